// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"fmt"
	"strings"
)

// Shell returns the command that runs the program in an image with a POSIX shell, sleep, env, cat and stat. A
// shell cannot listen on a port, so Listen is an error. Tick and Stay may be parts of a second if sleep supports
// them, as busybox and GNU do.
func (p Program) Shell() ([]string, error) {
	if p.Listen != 0 {
		return nil, errors.New("a shell cannot listen on a port")
	}
	var s strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	if p.Deaf {
		line("trap '' TERM")
	} else {
		line("trap 'exit 0' TERM")
	}
	for _, path := range p.Need {
		line("[ -e %[1]s ] || { echo no file %[1]s >&2; exit 1; }", quoteWord(path))
	}
	if p.Env {
		line("env")
	}
	for _, text := range p.Print {
		line("printf '%%s\\n' %s", quoteWord(text))
	}
	for _, text := range p.Stderr {
		line("printf '%%s\\n' %s >&2", quoteWord(text))
	}
	for _, path := range p.Write {
		line("if (echo written > %[1]s) 2>/dev/null; then echo wrote %[1]s; else echo cannot write %[1]s; fi", quoteWord(path))
	}
	for _, path := range p.Show {
		line(`if [ -e %[1]s ]; then echo file %[1]s $(printf '%%04d' $(stat -L -c %%a %[1]s)); cat %[1]s; [ -z "$(tail -c 1 %[1]s)" ] || echo; else echo no file %[1]s; fi`, quoteWord(path))
	}
	if p.Message != "" {
		line("printf '%%s' %s > %s || exit 1", quoteWord(p.Message), quoteWord(p.messagePath()))
	}
	if p.Size {
		// In some shells a signal ends read in the same way as the end of the input.
		line(`trap 'echo size $(stty size); changed=1' WINCH; echo size $(stty size); while changed=; read -r line || [ "$changed" ]; do :; done`)
	}
	if p.Echo {
		line("cat || exit 1")
	}
	p.wait(line)
	line("exit %d", p.Exit)
	return []string{"sh", "-c", s.String()}, nil
}

// wait writes the actions that take time. A shell hears a signal only while it waits for a background process.
func (p Program) wait(line func(string, ...any)) {
	if p.Stay == 0 {
		return
	}
	if p.Tick > 0 {
		end := "true"
		if p.Stay != Forever {
			end = fmt.Sprintf("[ $n -le %d ]", p.Stay/p.Tick)
		}
		line("n=1; while %s; do sleep %g & wait $!; echo tick $n; n=$((n+1)); done", end, p.Tick.Seconds())
		return
	}
	if p.Stay == Forever {
		line("while true; do sleep 3600 & wait $!; done")
		return
	}
	line("sleep %g & wait $!", p.Stay.Seconds())
}

// quoteWord makes text one word of a script.
func quoteWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
