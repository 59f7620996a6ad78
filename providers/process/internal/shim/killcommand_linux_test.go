// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// TestChildrenAreKilledBeforeTheirParents checks the order of kills, also for children that were started while
// others were being stopped.
func TestChildrenAreKilledBeforeTheirParents(t *testing.T) {
	lists := [][]int{{10, 11}, {10, 11, 12}, {10, 11, 12}}
	var got []string
	killAllOf(func() []int {
		list := lists[0]
		lists = lists[1:]
		return list
	}, func(pid int, sig syscall.Signal) { got = append(got, fmt.Sprint(pid, " ", sig)) })
	want := []string{"10 stopped (signal)", "11 stopped (signal)", "12 stopped (signal)", "12 killed", "11 killed", "10 killed"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestChildrenInASandboxAreKilledBeforeTheirParents checks the order in a sandbox, whose kernel continues
// stopped processes when their parent ends.
func TestChildrenInASandboxAreKilledBeforeTheirParents(t *testing.T) {
	s := keeps(t, `case "$ARGS" in
*" ps "*) printf 'UID PID PPID\n0 4 1\n0 5 4\n0 6 5\n0 7 6\n' ;;
*) echo "${ARGS##*--pid }" >>"${0%/*}/kills" ;;
esac`)
	s.killInSandbox(5)
	said, err := os.ReadFile(filepath.Join(filepath.Dir(s.spec.OCI.Program), "kills"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "5 c 19\n6 c 19\n7 c 19\n7 c 9\n6 c 9\n5 c 9\n"
	if string(said) != want {
		t.Errorf("got the signals %q, want %q", said, want)
	}
}
