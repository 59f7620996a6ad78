// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/devcluster/internal/state"
)

// The first words of lines on the progress pipe.
const (
	stepWord  = "step"
	readyWord = "ready"
	errorWord = "error"
)

// reporter reports the progress of a start to the user, and to a program on request.
type reporter struct {
	out   io.Writer
	pipe  *os.File // nil without --progress-fd, and after ready
	began time.Time
}

func newReporter(out io.Writer, progressFD int) *reporter {
	r := &reporter{out: out, began: time.Now()}
	if progressFD > 0 {
		r.pipe = os.NewFile(uintptr(progressFD), "progress")
	}
	return r
}

func (r *reporter) step(text string) {
	printStep(r.out, r.began, text)
	r.tell(stepWord, text)
}

func (r *reporter) ready(t *target, dir state.Dir) {
	printStep(r.out, r.began, "ready")
	printNext(r.out, t, dir)
	fmt.Fprintln(r.out, "Stop it with Ctrl-C or: devcluster down"+t.flags())
	r.tell(readyWord, "")
	r.close()
}

// end closes the pipe, and reports an error from before ready.
func (r *reporter) end(err error) {
	if err != nil {
		r.tell(errorWord, err.Error())
	}
	r.close()
}

// tell writes one line. The reader may be gone; the cluster goes on without it.
func (r *reporter) tell(word, text string) {
	if r.pipe != nil {
		_, _ = fmt.Fprintln(r.pipe, strings.TrimSpace(word+" "+strings.ReplaceAll(text, "\n", "; ")))
	}
}

func (r *reporter) close() {
	if r.pipe != nil {
		_ = r.pipe.Close() // nothing is buffered
		r.pipe = nil
	}
}

func printStep(out io.Writer, began time.Time, text string) {
	fmt.Fprintf(out, "✓ %-55s %5.1f s\n", text, time.Since(began).Seconds())
}

// printNext prints the next commands for a ready cluster.
func printNext(out io.Writer, t *target, dir state.Dir) {
	fmt.Fprintf(out, "\nexport KUBECONFIG=%s\n", dir.Kubeconfig())
	fmt.Fprintf(out, "or use: devcluster kubectl%s get namespaces\n", t.flags())
}
