// SPDX-License-Identifier: Apache-2.0

package imagematch

import "testing"

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		registry, image string
		want            bool
	}{
		{"https://index.docker.io/v1/", "nginx", true},
		{"https://index.docker.io/v1/", "team/nginx:1", true},
		{"docker.io", "docker.io/library/nginx@sha256:abc", true},
		{"docker.io/team", "team/app", true},
		{"docker.io/team", "nginx", false},
		{"index.docker.io", "r.example/nginx", false},
		{"r.example", "r.example/a/b:1.2", true},
		{"https://r.example/v2/", "r.example/a", true},
		{"r.example", "r.example:5000/a", false},
		{"r.example:5000", "r.example:5000/a", true},
		{"R.example", "r.Example/a", true},
		{"*.example", "r.example/a", true},
		{"*.example", "a.b.example/a", false},
		{"*.*.example", "a.b.example/a", true},
		{"r*.example", "r2.example/a", true},
		{"*", "r.example/a", false},
		{"r.example/team", "r.example/team/app", true},
		{"r.example/team", "r.example/team:1", true},
		{"r.example/team", "r.example/teams/app", false},
		{"localhost:5000", "localhost:5000/a", true},
		{"localhost", "localhost/a", true},
		{"[.example", "r.example/a", false},
	} {
		if got := Matches(tt.registry, tt.image); got != tt.want {
			t.Errorf("%s and %s: got %v", tt.registry, tt.image, got)
		}
	}
}
