"""A class that trains, to which tests add the methods that they are about."""

TRAINS = """
class Trainer:
    def __init__(self, net, args):
        self.model = DDP(net)
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)

    def train(self, loader):
        for x, y in loader:
            loss = F.cross_entropy(self.model(x.cuda()), y.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""
