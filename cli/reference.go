// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

const referenceHead = `<!-- Generated from the table in cli/flags.go: go test ./cli -run TestReference -update -->

# Configuration

A setting can be given as a flag, as an environment variable, or as a field of the file that ` + "`--config`" + ` names. They take
precedence in this order; the default comes last. ` + "`virtual-kubelet config print`" + ` shows the effective values and where each
comes from, in the form of a file:

` + "```yaml" + `
apiVersion: ` + configAPIVersion + `
kind: ` + configKind + `
nodeName: node-1
provider: mock
` + "```" + `

Unknown fields, fields that come twice, and values of the wrong type are errors that name the line. Values in a file are written as on the command line.
`

// reference returns docs/configuration.md.
func reference() string {
	fs := pflag.NewFlagSet("reference", pflag.ContinueOnError)
	(&options{}).define(fs)
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, group := range groups {
		fmt.Fprintf(&b, "\n## %s\n\n| Flag | Field | Environment | Default | Meaning |\n|---|---|---|---|---|\n", group)
		for _, s := range settings() {
			if s.group == group {
				f := fs.Lookup(s.flag)
				_, usage := pflag.UnquoteUsage(f)
				fmt.Fprintf(&b, "| `--%s` | `%s` | %s | %s | %s |\n", s.flag, s.field, code(s.env...), defaultText(f), usage)
			}
		}
	}
	b.WriteString("\n`--klog.v` and `--klog.vmodule` choose what the Kubernetes libraries log; above 7 they would log Secrets, so 7 is the most.\n")
	b.WriteString("\n## Names of other programs\n\n[Migrating](migrating.md) says more of each program.\n\n| Name | Program | Provider | Here |\n|---|---|---|---|\n")
	for _, n := range oldNames {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", n.name, n.of, n.provider, n.fate())
	}
	b.WriteString("| `--klog.*`, except the two above | " + ofCommon + " | | accepted without effect: the Kubernetes libraries log as the rest does |\n")
	return b.String()
}

// fate returns a description of the effect of an old name in this program.
func (n oldName) fate() string {
	switch {
	case n.now != "":
		return fmt.Sprintf("works; use `%s`", n.now)
	case n.field != "":
		return fmt.Sprintf("works: the field `%s` of the provider's configuration", n.field)
	case n.gone != "":
		return "an error: " + n.gone
	}
	return "accepted without effect: " + n.nothing
}

// defaultText returns the default of f without machine-dependent parts.
func defaultText(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "[]":
		return ""
	case defaultKubeconfig():
		return code("~/.kube/config")
	}
	return code(f.DefValue)
}

func code(words ...string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}
