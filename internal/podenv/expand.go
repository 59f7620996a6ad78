// SPDX-License-Identifier: Apache-2.0

package podenv

import "strings"

// Expand replaces $(NAME) by the value of NAME, as the API documents it for env, command and args: a reference to an unknown name stays unchanged, $$
// stands for one $ (so $$(NAME) is never a reference), and a $ before other characters stays. Inserted values are not expanded.
func Expand(s string, lookup func(string) (string, bool)) string {
	next := strings.IndexByte(s, '$')
	if next < 0 {
		return s
	}
	var out strings.Builder
	for ; next >= 0; next = strings.IndexByte(s, '$') {
		out.WriteString(s[:next])
		s = s[next+1:]
		switch {
		case strings.HasPrefix(s, "$"):
			out.WriteByte('$')
			s = s[1:]
		case strings.HasPrefix(s, "("):
			end := strings.IndexByte(s, ')')
			if end < 0 {
				out.WriteString("$(")
				s = s[1:]
				continue
			}
			if value, ok := lookup(s[1:end]); ok {
				out.WriteString(value)
			} else {
				out.WriteByte('$')
				out.WriteString(s[:end+1])
			}
			s = s[end+1:]
		default:
			out.WriteByte('$')
		}
	}
	out.WriteString(s)
	return out.String()
}
