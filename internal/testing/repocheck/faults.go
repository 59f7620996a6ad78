// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var faultTest = regexp.MustCompile(`^TestFault(\d\d)[A-Z]`)

// FaultTests checks that every row from 1 to rows of the matrix of faults has a test, except for the rows in
// without. The test's name is TestFault and the row's number with two digits. It also checks that document names
// every such test.
func (t *Tree) FaultTests(document string, rows int, without ...int) (breaches []string, err error) {
	text, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(document)))
	if err != nil {
		return nil, err
	}
	tested := map[int]bool{}
	for _, test := range t.Tests("TestFault") {
		row := 0
		if m := faultTest.FindStringSubmatch(test.Name); m != nil {
			row, _ = strconv.Atoi(m[1]) // two digits
		}
		switch {
		case row < 1 || row > rows:
			breaches = append(breaches, fmt.Sprintf("%s: %s: want the number of a row after TestFault, 01 to %d", test.At, test.Name, rows))
		case !strings.Contains(string(text), "`"+test.Name+"`"):
			breaches = append(breaches, fmt.Sprintf("%s: %s is not in %s: run `make faults`", test.At, test.Name, document))
		}
		tested[row] = true
	}
	for row := 1; row <= rows; row++ {
		if !tested[row] && !slices.Contains(without, row) {
			breaches = append(breaches, fmt.Sprintf("row %d of the matrix of faults has no test", row))
		}
	}
	return breaches, nil
}
