// SPDX-License-Identifier: Apache-2.0

package rowpage

import (
	"fmt"
	"regexp"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/repocheck"
)

var rowID = regexp.MustCompile(`^([A-Z]\d+)[A-Z]`)

// RowOf returns the ID of the row proven by a test: A7 for TestSecurityA7StreamsNeedCreate with the prefix
// TestSecurity. It returns "" for a test without the name of a row.
func RowOf(test, prefix string) string {
	if len(test) < len(prefix) || test[:len(prefix)] != prefix {
		return ""
	}
	if m := rowID.FindStringSubmatch(test[len(prefix):]); m != nil {
		return m[1]
	}
	return ""
}

// Proofs returns the tests of the tree with the name prefix, by the ID of their row and in the form of a table's
// cell. It returns a breach for each test without a row.
func Proofs(tree *repocheck.Tree, prefix string, isRow func(id string) bool) (tests map[string][]string, breaches []string) {
	tests = map[string][]string{}
	for _, test := range tree.Tests(prefix) {
		id := RowOf(test.Name, prefix)
		if !isRow(id) {
			breaches = append(breaches, fmt.Sprintf("%s: %s: want a row of the page after %s, such as A7", test.At, test.Name, prefix))
			continue
		}
		tests[id] = append(tests[id], fmt.Sprintf("`%s` (%s)", test.Name, test.Dir))
	}
	return tests, breaches
}
