// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// FileOrder is an order of the files of a package, from the bottom up, with the fewest known upward arrows. An arrow leads from a file to a
// used file: any number of uses between two files are one arrow.
type FileOrder struct {
	Dir   string
	Files []string
	// Arrows counts all arrows. Up has the arrows from a file to a later one. Without these, the arrows form no cycle.
	Arrows int
	Up     []Arrow
}

// Arrow is a use of another file's names by a file.
type Arrow struct {
	From, To string
	Names    []string
}

// String returns the arrow as a sentence, with three names at most.
func (a Arrow) String() string {
	names := strings.Join(a.Names[:min(3, len(a.Names))], ", ")
	if more := len(a.Names) - 3; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s uses %s of %s", a.From, names, a.To)
}

// Share returns the percentage of upward arrows.
func (o FileOrder) Share() float64 { return 100 * float64(len(o.Up)) / float64(max(1, o.Arrows)) }

// String returns the order as lines: the files from the ground up, each with its upward arrows.
func (o FileOrder) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %d of %d arrows between %d files point up (%.1f %%)\n", o.Dir, len(o.Up), o.Arrows, len(o.Files), o.Share())
	for i, file := range o.Files {
		fmt.Fprintf(&s, "%4d %s\n", i+1, file)
		for _, a := range o.Up {
			if a.From == file {
				fmt.Fprintf(&s, "       ↑ %s: %s\n", a.To, strings.Join(a.Names, ", "))
			}
		}
	}
	return s.String()
}

// FileOrder orders the files of the package in a folder.
func (t *Tree) FileOrder(dir string) FileOrder {
	u := t.usesIn(dir)
	o := FileOrder{Dir: dir}
	for _, circle := range u.findCircles() {
		o.Files = append(o.Files, u.orderCircle(circle)...)
	}
	for i, from := range o.Files {
		o.Arrows += len(u[from])
		for _, to := range o.Files[i+1:] {
			if names := u[from][to]; len(names) > 0 {
				o.Up = append(o.Up, Arrow{From: from, To: to, Names: slices.Sorted(maps.Keys(names))})
			}
		}
	}
	return o
}

// FileOrders compares the number of upward arrows in each matching package with the ceiling of the package, or
// with 0 if ceilings does not name it. More arrows are breaches, and so are fewer: a ceiling is lowered with the
// number.
func (t *Tree) FileOrders(ceilings map[string]int, patterns ...string) (breaches []string) {
	dirs := map[string]bool{}
	for _, f := range t.Files {
		if !f.IsTest() && matchesAny(patterns, f.Dir()) {
			dirs[f.Dir()] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		o, ceiling := t.FileOrder(dir), ceilings[dir]
		switch n := len(o.Up); {
		case n > ceiling:
			up := slices.SortedStableFunc(slices.Values(o.Up), func(a, b Arrow) int { return cmp.Compare(len(a.Names), len(b.Names)) })
			var says []string
			for _, a := range up[:min(5, n)] {
				says = append(says, a.String())
			}
			breaches = append(breaches, fmt.Sprintf("%s: %d of %d arrows between files point up, and the ceiling is %d: turn %d of them, such as: %s; `go run ./test/report order %s` prints all",
				dir, n, o.Arrows, ceiling, n-ceiling, strings.Join(says, "; "), dir))
		case n < ceiling:
			breaches = append(breaches, fmt.Sprintf("%s: %d arrows between files point up, and the ceiling is %d: lower it to %d", dir, n, ceiling, n))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(ceilings)) {
		if !dirs[dir] {
			breaches = append(breaches, fmt.Sprintf("%s: has a ceiling, and is no package that is checked: take the ceiling off", dir))
		}
	}
	return breaches
}

// ParseCeilings reads lines of a folder and its ceiling. Lines with # at the beginning are comments.
func ParseCeilings(text string) (map[string]int, error) {
	ceilings := map[string]int{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("read the ceiling %q: want a folder and a number", strings.TrimSpace(line))
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil || n < 1 {
			return nil, fmt.Errorf("read the ceiling of %s: %q is no number above 0; a package without a line has the ceiling 0", fields[0], fields[1])
		}
		if _, twice := ceilings[fields[0]]; twice {
			return nil, fmt.Errorf("read the ceiling of %s: it has two", fields[0])
		}
		ceilings[fields[0]] = n
	}
	return ceilings, nil
}

// findCircles returns the files in groups, each after the groups that it uses. Files in a cycle of uses are one group, and every other file
// is a group of its own. The groups are the strongly connected components, by Tarjan.
func (u uses) findCircles() (found [][]string) {
	number, low, stack := map[string]int{}, map[string]int{}, []string(nil)
	var visit func(string)
	visit = func(file string) {
		number[file] = len(number) + 1
		low[file] = number[file]
		stack = append(stack, file)
		for _, next := range slices.Sorted(maps.Keys(u[file])) {
			if number[next] == 0 {
				visit(next)
				low[file] = min(low[file], low[next])
			} else if slices.Contains(stack, next) {
				low[file] = min(low[file], number[next])
			}
		}
		if low[file] == number[file] {
			at := slices.Index(stack, file)
			found = append(found, slices.Sorted(slices.Values(stack[at:])))
			stack = stack[:at]
		}
	}
	for _, file := range slices.Sorted(maps.Keys(u)) {
		if number[file] == 0 {
			visit(file)
		}
	}
	return found
}

// exactly is the largest number of files for trying all orders. The cost is a step for each of 2^n sets.
const exactly = 16

// orderCircle returns the files of a circle in an order with few upward arrows. Among such orders it prefers an order
// with few names at the arrows.
//
// The minimum is exact for a circle of up to exactly files: the best order of a set of files ends with one of
// them, after the best order of the others. More files are ordered by steps with no other input than the arrows.
// The first step repeatedly takes a file for the bottom: the file with the greatest excess of uses by the others
// over its own uses of them (the heuristic of Eades, Lin and Smyth). Then neighbours change places, in blocks of
// any length, and windows of neighbours are reordered exactly, until neither turns an arrow. This may leave an
// arrow more than the minimum.
func (u uses) orderCircle(circle []string) []string {
	n := len(circle)
	w := weights{n: n, of: make([]int, n*n)}
	for i, from := range circle {
		for j, to := range circle {
			if names := len(u[from][to]); names > 0 {
				w.of[i*n+j] = 1<<16 + names
			}
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if n <= exactly {
		order = w.exactOrder(order)
	} else {
		order = w.improveOrder(w.greedyOrder())
	}
	var files []string
	for _, i := range order {
		files = append(files, circle[i])
	}
	return files
}

// weights has the weights of the arrows between n files, 0 for none: one more arrow weighs more than any number
// of names.
type weights struct {
	n  int
	of []int
}

func (w weights) arrowWeight(from, to int) int { return w.of[from*w.n+to] }

// upWeight returns the total weight of the upward arrows in an order.
func (w weights) upWeight(order []int) (sum int) {
	for i, from := range order {
		for _, to := range order[i+1:] {
			sum += w.arrowWeight(from, to)
		}
	}
	return sum
}

// exactOrder returns the best order of some files.
func (w weights) exactOrder(files []int) []int {
	n := len(files)
	best, last := make([]int, 1<<n), make([]uint8, 1<<n)
	for set := 1; set < 1<<n; set++ {
		best[set] = -1
		for i := range n {
			if set&(1<<i) == 0 {
				continue
			}
			sum := best[set&^(1<<i)]
			for j := range n {
				if set&(1<<j) != 0 {
					sum += w.arrowWeight(files[j], files[i])
				}
			}
			if best[set] < 0 || sum < best[set] {
				best[set], last[set] = sum, uint8(i)
			}
		}
	}
	order := make([]int, n)
	for set, at := 1<<n-1, n-1; at >= 0; at-- {
		order[at] = files[last[set]]
		set &^= 1 << last[set]
	}
	return order
}

// greedyOrder takes files for the bottom and the top: a file without uses of the rest, a file unused by the rest, or
// else the file with the greatest excess of uses by others over its own uses.
func (w weights) greedyOrder() []int {
	var left, bottom, top []int
	for i := range w.n {
		left = append(left, i)
	}
	for len(left) > 0 {
		at, most, isTop := 0, 0, false
		for k, i := range left {
			out, in := 0, 0
			for _, j := range left {
				out += w.arrowWeight(i, j)
				in += w.arrowWeight(j, i)
			}
			if out == 0 || in == 0 {
				at, isTop = k, out > 0
				break
			}
			if k == 0 || in-out > most {
				at, most = k, in-out
			}
		}
		if isTop {
			top = append(top, left[at])
		} else {
			bottom = append(bottom, left[at])
		}
		left = slices.Delete(left, at, at+1)
	}
	slices.Reverse(top)
	return append(bottom, top...)
}

// swapChange returns the change of an order's weight if order[from:mid] and order[mid:to] change places.
func (w weights) swapChange(order []int, from, mid, to int) (sum int) {
	for _, i := range order[from:mid] {
		for _, j := range order[mid:to] {
			sum += w.arrowWeight(j, i) - w.arrowWeight(i, j)
		}
	}
	return sum
}

// window is the number of neighbours to reorder exactly at a time.
const window = 10

// improveOrder lets blocks change places, then reorders windows, until neither makes the order better.
func (w weights) improveOrder(order []int) []int {
	for now := w.upWeight(order); ; {
		before := now
		for from := range order {
			for mid := from + 1; mid < len(order); mid++ {
				for to := mid + 1; to <= len(order); to++ {
					if w.swapChange(order, from, mid, to) < 0 {
						order = slices.Concat(order[:from], order[mid:to], order[from:mid], order[to:])
						now = w.upWeight(order)
					}
				}
			}
		}
		for at := 0; at+window <= len(order); at++ {
			try := slices.Concat(order[:at], w.exactOrder(order[at:at+window]), order[at+window:])
			if sum := w.upWeight(try); sum < now {
				order, now = try, sum
			}
		}
		if now == before {
			return order
		}
	}
}
