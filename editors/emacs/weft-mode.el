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

;; Three quotes begin and end a text of several lines: the first and the last of them are marked as its fences.
(defun weft--mark-quotes ()
  "Mark the three quotes that end at point, unless they are text themselves."
  (let* ((end (point)) (start (- end 3)) (state (save-excursion (syntax-ppss start))))
    (cond ((or (nth 4 state) (and (nth 3 state) (eq (char-before start) ?\\))) nil)
          ((null (nth 3 state))
           (put-text-property start (1+ start) 'syntax-table (string-to-syntax "|")))
          ((eq (nth 3 state) t)
           (put-text-property (1- end) end 'syntax-table (string-to-syntax "|"))))))

(defconst weft--propertize
  (syntax-propertize-rules ("\"\"\"" (0 (ignore (weft--mark-quotes))))))

(defun weft--goes-on-p (above)
  "Whether the line at point goes on with the statement that ends at ABOVE."
  (or (looking-at "|>\\|\\.[[:alpha:]]\\|else\\_>")
      (save-excursion
        (goto-char above)
        (looking-back "[-+*/%@&|^<>=]\\|\\_<\\(?:and\\|or\\|not\\|in\\|by\\)" (line-beginning-position)))))

(defun weft--column ()
  "The column of the line whose first character is at point; nil in a text."
  (let* ((state (save-excursion (syntax-ppss (line-beginning-position))))
         (open (nth 1 state))
         (above (save-excursion (beginning-of-line) (forward-comment (- (point))) (point))))
    (cond ((nth 3 state) nil)
          ((and open (looking-at "[])}]")) (save-excursion (goto-char open) (current-indentation)))
          ((and open (save-excursion
                       (goto-char (1+ open))
                       (skip-chars-forward " \t")
                       (and (not (looking-at "#\\|$")) (current-column)))))
          (t (+ (if open (save-excursion (goto-char open) (+ 2 (current-indentation))) 0)
                (if (and (> above (or open (point-min))) (weft--goes-on-p above)) 2 0))))))

(defun weft-indent-line ()
  "Indent by the innermost bracket.
Behind one that ends its line it is by two blanks, else below what follows it."
  (interactive)
  (let ((column (save-excursion (back-to-indentation) (weft--column))))
    (if (null column) 'noindent
      (if (<= (current-column) (current-indentation))
          (indent-line-to column)
        (save-excursion (indent-line-to column))))))

;;;###autoload
(define-derived-mode weft-mode prog-mode "Weft"
  "Programs of Weft."
  (setq-local comment-start "# ")
  (setq-local comment-start-skip "#+ *")
  (setq-local indent-tabs-mode nil)
  (setq-local parse-sexp-lookup-properties t)
  (setq-local syntax-propertize-function weft--propertize)
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
