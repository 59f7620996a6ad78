// SPDX-License-Identifier: Apache-2.0

package sizing

import "testing"

var table = []Row{
	{250, []Steps{One(512 * Mi), {1 * Gi, 2 * Gi, 1 * Gi}}},
	{1000, []Steps{{2 * Gi, 8 * Gi, 2 * Gi}}},
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		asked, want Size
		none        bool
	}{
		{asked: Size{}, want: Size{250, 512 * Mi}},
		{asked: Size{250, 512 * Mi}, want: Size{250, 512 * Mi}},
		{asked: Size{250, 512*Mi + 1}, want: Size{250, Gi}},
		{asked: Size{1, Gi + 1}, want: Size{250, 2 * Gi}},
		{asked: Size{1, 2*Gi + 1}, want: Size{1000, 4 * Gi}},
		{asked: Size{251, 1}, want: Size{1000, 2 * Gi}},
		{asked: Size{1000, 8 * Gi}, want: Size{1000, 8 * Gi}},
		{asked: Size{1001, 1}, none: true},
		{asked: Size{1, 8*Gi + 1}, none: true},
	} {
		if got, ok := Fit(table, c.asked); ok == c.none || got != c.want {
			t.Errorf("%v: got %v, %t, want %v", c.asked, got, ok, c.want)
		}
	}
}
