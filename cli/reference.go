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
	b.WriteString("\n## Older names\n\n| Flag | What to do |\n|---|---|\n")
	for _, s := range settings() {
		switch {
		case s.alias != "":
			fmt.Fprintf(&b, "| `--%s` | works; use `--%s` |\n", s.alias, s.flag)
		case s.deprecated != "":
			fmt.Fprintf(&b, "| `--%s` | accepted without effect: %s |\n", s.flag, s.deprecated)
		case s.gone != "":
			fmt.Fprintf(&b, "| `--%s` | an error: %s |\n", s.flag, s.gone)
		}
	}
	b.WriteString("| `--klog.*`, except the two above | accepted without effect: the Kubernetes libraries log as the rest does |\n")
	return b.String()
}

// defaultText is the default of f without what depends on the machine.
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
