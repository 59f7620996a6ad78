// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"fmt"
	"strings"
)

// Named is the declaration of a provider, for the support table.
type Named struct {
	Name string
	Declaration
	// Proven are the features with a passed check.
	Proven map[Feature]bool
}

// Table returns the support table of providers in Markdown. Each provider supports a feature (●, "proven"), declares it without a passed check (○,
// "declared"), omits it from pods that request it (◐, "left out"), or refuses such pods (–, "no"). The table of one provider has words and notes, the
// table of several providers has signs.
func Table(providers ...Named) string {
	var b strings.Builder
	alone := len(providers) == 1
	b.WriteString("| Feature | Asked for by |")
	for _, p := range providers {
		fmt.Fprintf(&b, " %s |", p.Name)
	}
	columns := len(providers)
	if alone {
		b.WriteString(" Note |")
		columns++
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", columns) + "\n")
	for _, e := range features {
		fmt.Fprintf(&b, "| %s | %s |", e.feature, e.fields)
		for _, p := range providers {
			word, sign := p.supportSign(e.feature)
			if alone {
				fmt.Fprintf(&b, " %s | %s |", word, p.Remark(e.feature))
			} else {
				fmt.Fprintf(&b, " %s |", sign)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// supportSign returns the word and the sign for a feature.
func (n Named) supportSign(f Feature) (word, sign string) {
	switch {
	case !n.Has(f) && n.accepted[f]:
		return "left out", "◐"
	case !n.Has(f):
		return "no", "–"
	case n.Proven[f]:
		return "proven", "●"
	}
	return "declared", "○"
}
