// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// drawn returns random uses between n files: about a third of all possible arrows.
func drawn(r *rand.Rand, n int) (u uses, files []string) {
	u = uses{}
	for i := range n {
		files = append(files, fmt.Sprintf("%02d.go", i))
		u[files[i]] = map[string]map[string]bool{}
	}
	for _, from := range files {
		for _, to := range files {
			if from != to && r.IntN(3) == 0 {
				u[from][to] = map[string]bool{"x": true}
			}
		}
	}
	return u, files
}

// up counts the arrows from a file to a later one.
func (u uses) up(order []string) (n int) {
	for i, from := range order {
		for _, to := range order[i+1:] {
			n += len(u[from][to])
		}
	}
	return n
}

// fewest tries all orders of the files in rest, after the files in before.
func (u uses) fewest(before, rest []string) int {
	if len(rest) == 0 {
		return u.up(before)
	}
	best := 1 << 30
	for i := range rest {
		best = min(best, u.fewest(slices.Concat(before, rest[i:i+1]), slices.Concat(rest[:i], rest[i+1:])))
	}
	return best
}

func TestOrderOfFewFilesIsTheBest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		u, files := drawn(r, 6)
		if got, want := u.up(u.orderCircle(files)), u.fewest(nil, files); got != want {
			t.Errorf("%v: %d arrows point up, want %d", u, got, want)
		}
	}
}

func TestOrderOfManyFilesIsCloseToTheBest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	ring := uses{}
	var files []string
	for i := range 3 * exactly {
		files = append(files, fmt.Sprintf("%02d.go", i))
		ring[files[i]] = map[string]map[string]bool{fmt.Sprintf("%02d.go", (i+1)%(3*exactly)): {"x": true}}
	}
	if got := ring.up(ring.orderCircle(files)); got != 1 {
		t.Errorf("a ring: %d arrows point up, want 1", got)
	}
	for range 3 {
		u, files := drawn(r, exactly+1)
		w := weights{n: len(files), of: make([]int, len(files)*len(files))}
		all := make([]int, len(files))
		for i, from := range files {
			all[i] = i
			for j, to := range files {
				w.of[i*w.n+j] = len(u[from][to])
			}
		}
		order := u.orderCircle(files)
		if got, best := u.up(order), w.upWeight(w.exactOrder(all)); got > best+2 {
			t.Errorf("%d arrows point up, want at most 2 more than %d", got, best)
		}
		if again := u.orderCircle(files); !slices.Equal(order, again) {
			t.Errorf("the order changes: %v, then %v", order, again)
		}
	}
}

func TestOrderIsPrinted(t *testing.T) {
	want := strings.TrimPrefix(`
core: 1 of 5 arrows between 6 files point up (20.0 %)
   1 core.go
   2 doc.go
   3 top.go
   4 two.go
       ↑ three.go: end
   5 one.go
   6 three.go
`, "\n")
	if got := loadArchive(t, filepath.Join("testdata", "broken.txtar")).FileOrder("core").String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCeilingsAreRead(t *testing.T) {
	got, err := ParseCeilings("# a comment\n\na/b 3\nc 1\n")
	if err != nil || len(got) != 2 || got["a/b"] != 3 || got["c"] != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"a", "a 0", "a -1", "a 1 2", "a x", "a 1\na 2"} {
		if got, err := ParseCeilings(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
