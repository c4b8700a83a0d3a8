;;; weft-mode.el --- Colours, comments and indentation of Weft  -*- lexical-binding: t; -*-

;; Put this file into a folder of `load-path', and (require 'weft-mode) into your init file.

;;; Code:

(defvar weft-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?# "<" table)
    (modify-syntax-entry ?\n ">" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?\\ "\\" table)
    (modify-syntax-entry ?_ "w" table)
    (dolist (mark (string-to-list "+-*/%@&|^~<>=!"))
      (modify-syntax-entry mark "." table))
    table))

(defvar weft-font-lock-keywords
  `((,(regexp-opt '("let" "fn" "if" "else" "for" "while" "in" "by" "break" "continue" "return" "try" "catch" "import"
                    "and" "or" "not")
                  'words)
     . font-lock-keyword-face)
    (,(regexp-opt '("true" "false" "nil" "pi" "inf" "nan") 'words) . font-lock-constant-face)
    (,(regexp-opt '("bool" "u8" "i32" "u32" "i64" "u64" "f16" "bf16" "f32" "f64" "c64" "c128") 'words)
     . font-lock-type-face)
    (,(concat (regexp-opt '("linalg" "nn" "random" "optim" "trace" "regex" "json" "date" "table" "stats" "signal" "ode"
                            "integrate" "fft" "plot")
                          'words)
              "\\.")
     1 font-lock-constant-face)
    ("\\<fn[ \t]+\\(\\w+\\)" 1 font-lock-function-name-face)
    ("\\<\\(\\w+\\)(" 1 font-lock-builtin-face)))

(defun weft-indent-line ()
  "Indent by two blanks for each bracket that is open in front of the line."
  (interactive)
  (let ((depth (save-excursion
                 (back-to-indentation)
                 (let ((open (car (syntax-ppss))))
                   (if (looking-at "[])}]") (1- open) open)))))
    (if (<= (current-column) (current-indentation))
        (indent-line-to (* 2 (max depth 0)))
      (save-excursion (indent-line-to (* 2 (max depth 0)))))))

;;;###autoload
(define-derived-mode weft-mode prog-mode "Weft"
  "Programs of Weft."
  (setq-local comment-start "# ")
  (setq-local comment-start-skip "#+ *")
  (setq-local indent-tabs-mode nil)
  (setq-local indent-line-function #'weft-indent-line)
  (setq-local font-lock-defaults '(weft-font-lock-keywords)))

;;;###autoload
(add-to-list 'auto-mode-alist '("\\.weft\\'" . weft-mode))
(add-to-list 'interpreter-mode-alist '("weft" . weft-mode))

;; The language server: M-x eglot, or (add-hook 'weft-mode-hook #'eglot-ensure).
(defvar eglot-server-programs)
(with-eval-after-load 'eglot
  (add-to-list 'eglot-server-programs '(weft-mode "weft" "lsp")))

(provide 'weft-mode)
;;; weft-mode.el ends here
