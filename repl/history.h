/* history.h — what was entered at the prompt, in this session and in those before it. */
#ifndef WEFT_REPL_HISTORY_H
#define WEFT_REPL_HISTORY_H

void prompt_history_load(void);            /* the file's last entries become readline's */
void prompt_history_add(const char *entry); /* into readline's list, and behind the file's end at once */

void prompt_history_tell(const char *part); /* the last entries, or the last of those that hold the part */

#endif
