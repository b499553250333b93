import cProfile,pstats,sys,threading
sys.argv=[sys.argv[0]]+sys.argv[1:]+['-q']
src=open('try.py').read()
def go():
    p=cProfile.Profile()
    p.enable()
    try: exec(compile(src,'try','exec'),{'__name__':'x'})
    finally:
        p.disable()
        pstats.Stats(p).sort_stats('tottime').print_stats(22)
threading.stack_size(512*1024*1024)
t=threading.Thread(target=go);t.start();t.join()
