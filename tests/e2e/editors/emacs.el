;;; emacs.el --- drives the server from a batch Emacs through Eglot  -*- lexical-binding: t -*-

;; Opens the file of DSMIGRATE_FILE with the server of DSMIGRATE_SERVER, waits for diagnostics, asks for hover and
;; completion, applies the first quick fix, waits for its diagnostic to go.  Prints one JSON object.

;;; Code:
(let ((default-directory "/usr/share/emacs/site-lisp/elpa/"))
  (when (file-directory-p default-directory)
    (normal-top-level-add-subdirs-to-load-path)))
(require 'eglot)
(require 'flymake)
(require 'json)

(define-derived-mode dsmigrate-test-mode prog-mode "DeepSpeed")
(add-to-list 'eglot-server-programs
             `(dsmigrate-test-mode . ,(split-string (getenv "DSMIGRATE_SERVER") " ")))
(setq eglot-sync-connect 120
      eglot-confirm-server-initiated-edits nil
      eglot-events-buffer-size 0)

(defvar dsmigrate-reports nil "Messages of the diagnostics that the server sent last.")
(cl-defmethod eglot-handle-notification :after (_server (_method (eql textDocument/publishDiagnostics))
                                                        &key diagnostics &allow-other-keys)
  (setq dsmigrate-reports (mapcar (lambda (item) (plist-get item :message)) diagnostics)))

(defun dsmigrate-wait (condition)
  "Wait up to two minutes until CONDITION gives non-nil; return whether it did."
  (let ((end (+ (float-time) 120)) (done nil))
    (while (and (not (setq done (funcall condition))) (< (float-time) end))
      (accept-process-output nil 0.05))
    (and done t)))

(defun dsmigrate-at (text)
  "Move into the first TEXT."
  (goto-char (point-min))
  (search-forward text)
  (goto-char (1+ (match-beginning 0))))

(defun dsmigrate-run ()
  "Drive the server and return what was seen."
  (with-current-buffer (find-file-noselect (getenv "DSMIGRATE_FILE"))
    (dsmigrate-test-mode)
    (let ((project-find-functions (list (lambda (directory) (cons 'transient directory)))))
      (apply #'eglot (eglot--guess-contact)))
    (let* ((server (eglot-current-server))
           (diagnosed (dsmigrate-wait (lambda () dsmigrate-reports)))
           (diagnostics dsmigrate-reports)
           (hover (progn (dsmigrate-at "\"stage\"")
                         (jsonrpc-request server :textDocument/hover (eglot--TextDocumentPositionParams))))
           (completion (progn (dsmigrate-at "\"complete_here\"")
                              (jsonrpc-request server :textDocument/completion
                                               (eglot--TextDocumentPositionParams))))
           (place (progn (dsmigrate-at "\"overlap_com\"") (eglot--pos-to-lsp-position)))
           (actions (append (jsonrpc-request server :textDocument/codeAction
                                             (list :textDocument (eglot--TextDocumentIdentifier)
                                                   :range (list :start place :end place)
                                                   :context (list :diagnostics [])))
                            nil))
           (fix (seq-find (lambda (action) (equal (plist-get action :kind) "quickfix")) actions)))
      (unless (plist-get fix :edit)
        (setq fix (jsonrpc-request server :codeAction/resolve fix)))
      (eglot--apply-workspace-edit (plist-get fix :edit))
      (eglot--signal-textDocument/didChange)
      (let ((fixed (dsmigrate-wait
                    (lambda () (not (seq-some (lambda (text) (string-match-p "overlap_com`" text))
                                              dsmigrate-reports)))))
            (text (buffer-substring-no-properties (point-min) (point-max))))
        (set-buffer-modified-p nil)
        (eglot-shutdown server)
        `((steps . ((diagnosed . ,(if diagnosed t :json-false)) (fixed . ,(if fixed t :json-false))))
          (diagnostics . ,(vconcat diagnostics))
          (hover . ,(plist-get (plist-get hover :contents) :value))
          (completion . ,(vconcat (mapcar (lambda (item) (plist-get item :label))
                                          (plist-get completion :items))))
          (actions . ,(vconcat (mapcar (lambda (action) (plist-get action :title)) actions)))
          (text . ,text))))))

(condition-case problem
    (progn (princ (json-encode (dsmigrate-run))) (terpri) (kill-emacs 0))
  (error (princ (json-encode `((error . ,(format "%S" problem))))) (terpri) (kill-emacs 1)))
;;; emacs.el ends here
