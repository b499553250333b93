;;; snippet-lsp-mode.el --- tries the documented lsp-mode set-up in a batch Emacs  -*- lexical-binding: t -*-
;;; Code:
(dolist (directory '("/usr/share/emacs/site-lisp/elpa/" "/usr/share/emacs/site-lisp/elpa-src/"))
  (let ((default-directory directory))
    (when (file-directory-p default-directory)
      (normal-top-level-add-subdirs-to-load-path))))
(require 'json)
(define-derived-mode json-mode prog-mode "JSON")
(load (getenv "DSMIGRATE_SNIPPET") nil t)
(setq lsp-auto-guess-root nil
      lsp-restart 'ignore
      lsp-session-file (expand-file-name "lsp-session" (getenv "HOME"))
      lsp-enable-suggest-server-download nil)
(defun dsmigrate-messages ()
  "Return the messages of every diagnostic that lsp-mode holds."
  (let (found)
    (maphash (lambda (_file items)
               (seq-doseq (item items) (push (gethash "message" item) found)))
             (lsp-diagnostics t))
    found))
(condition-case problem
    (with-current-buffer (find-file-noselect (getenv "DSMIGRATE_FILE"))
      (json-mode)
      (lsp-workspace-folders-add (file-name-directory (getenv "DSMIGRATE_FILE")))
      (lsp)
      (let ((end (+ (float-time) 120)))
        (while (and (not (dsmigrate-messages)) (< (float-time) end))
          (accept-process-output nil 0.05)))
      (princ (json-encode `((steps) (diagnostics . ,(vconcat (dsmigrate-messages))))))
      (terpri))
  (error (princ (json-encode `((error . ,(format "%S" problem))))) (terpri)))
;;; snippet-lsp-mode.el ends here
