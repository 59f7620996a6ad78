// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"strings"
)

// Named is the declaration of a provider, for the table of support.
type Named struct {
	Name string
	Declaration
	// Proven are the features that somebody has seen to work.
	Proven map[Feature]bool
}

// Table writes the table of support of providers in Markdown. A feature is "proven", "declared" without a proof, "left out" of pods that
// ask for it and run without it, or not there.
func Table(providers ...Named) string {
	var b, notes strings.Builder
	n := 0
	b.WriteString("| Feature | Asked for by |")
	for _, p := range providers {
		fmt.Fprintf(&b, " %s |", p.Name)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(providers)) + "\n")
	for _, e := range features {
		fmt.Fprintf(&b, "| %s | %s |", e.feature, e.fields)
		for _, p := range providers {
			note := p.Remark(e.feature)
			mark := "declared"
			switch {
			case !p.Has(e.feature) && p.accepted[e.feature]:
				mark = "left out"
			case !p.Has(e.feature):
				mark = "no"
			case p.Proven[e.feature]:
				mark = "proven"
			}
			if note != "" {
				n++
				mark += fmt.Sprintf(" [%d]", n)
				fmt.Fprintf(&notes, "%d. %s, %s: %s\n", n, p.Name, e.feature, note)
			}
			fmt.Fprintf(&b, " %s |", mark)
		}
		b.WriteByte('\n')
	}
	if n > 0 {
		b.WriteString("\n" + notes.String())
	}
	return b.String()
}
