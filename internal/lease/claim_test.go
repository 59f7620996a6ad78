// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"os"
	"os/exec"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sight is a read of the lease, with the expected result.
type sight struct {
	after  time.Duration // since the look before
	lease  *coordinationv1.Lease
	result Result
	left   time.Duration
}

// heldBy returns a lease with the mark of a holder, or with no mark if holder is "", at its nth renewal.
func heldBy(holder string, renewal int) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	if holder != "" {
		lease.Annotations = map[string]string{HolderAnnotation: ParseMark(holder).Text()}
	}
	at := metav1.NewMicroTime(time.Unix(int64(renewal), 0))
	lease.Spec.RenewTime = &at
	return lease
}

func givenUp(renewal int) *coordinationv1.Lease {
	lease := heldBy("", renewal)
	lease.Annotations = map[string]string{HolderAnnotation: ""}
	return lease
}

// awaited returns a lease with a holder, for which another process has waited since its nth renewal.
func awaited(holder string, renewal int) *coordinationv1.Lease {
	lease := heldBy(holder, renewal)
	(&Claim{Self: ParseMark("third")}).Announce(lease)
	return lease
}

// TestLeaseClaim checks the rules by which a process decides who holds the lease, as sequences of sights. The mark of this process is "me"; "dead" is
// a process that has provably ended.
func TestLeaseClaim(t *testing.T) {
	const s = time.Second
	for name, tt := range map[string]struct {
		held   *coordinationv1.Lease // as we wrote it before
		sights []sight
	}{
		"there is no lease":                     {nil, []sight{{0, nil, Free, 0}}},
		"nobody has ever named itself":          {nil, []sight{{0, heldBy("", 1), Free, 0}}},
		"the last holder gave it up":            {nil, []sight{{0, givenUp(1), Free, 0}}},
		"the last holder has ended":             {nil, []sight{{0, heldBy("dead", 1), Free, 0}}},
		"it is ours":                            {heldBy("me", 1), []sight{{3 * s, heldBy("me", 1), Ours, 0}}},
		"it is ours, and the answer was lost":   {nil, []sight{{0, heldBy("me", 1), Ours, 0}}},
		"it was ours and is gone":               {heldBy("me", 1), []sight{{3 * s, nil, Free, 0}}},
		"a name without a renewal is no claim":  {heldBy("me", 1), []sight{{3 * s, heldBy("thief", 1), Ours, 0}}},
		"our name was taken away":               {heldBy("me", 1), []sight{{3 * s, heldBy("", 1), Ours, 0}}},
		"it was taken, and given up since":      {heldBy("me", 1), []sight{{60 * s, givenUp(2), Free, 0}}},
		"it was taken while we were away":       {heldBy("me", 1), []sight{{60 * s, heldBy("other", 2), Theirs, 12 * s}}},
		"somebody without a name renews it now": {heldBy("me", 1), []sight{{3 * s, heldBy("", 2), Theirs, 12 * s}, {2 * s, heldBy("", 2), Theirs, 10 * s}}},
		"the holder renews": {nil, []sight{
			{0, heldBy("other", 1), Theirs, 12 * s}, {5 * s, heldBy("other", 1), Theirs, 7 * s},
			{5 * s, heldBy("other", 2), Theirs, 12 * s}, {5 * s, heldBy("other", 2), Theirs, 7 * s},
		}},
		"the holder is silent": {nil, []sight{
			{0, heldBy("other", 1), Theirs, 12 * s}, {5 * s, heldBy("other", 1), Theirs, 7 * s},
			{5 * s, heldBy("other", 1), Theirs, 2 * s}, {2 * s, heldBy("other", 1), Free, 0},
		}},
		"another process says that it waits, which the holder does not": {nil, []sight{
			{0, heldBy("other", 1), Theirs, 12 * s}, {5 * s, awaited("other", 1), Theirs, 7 * s}, {5 * s, awaited("other", 1), Theirs, 2 * s},
			{1 * s, awaited("other", 2), Theirs, 12 * s},
		}},
		"it is ours, and somebody edits our name and waits": {heldBy("me", 1), []sight{{3 * s, awaited("thief", 1), Ours, 0}}},
		"its clock is an hour behind": {nil, []sight{
			{0, heldBy("other", 3600), Theirs, 12 * s}, {5 * s, heldBy("other", 2), Theirs, 12 * s},
		}},
		"another one waits too, and gets it": {nil, []sight{
			{0, heldBy("other", 1), Theirs, 12 * s}, {5 * s, heldBy("other", 1), Theirs, 7 * s},
			{5 * s, heldBy("third", 2), Theirs, 12 * s},
		}},
		"what we could not see is no sign of death": {nil, []sight{
			{0, heldBy("other", 1), Theirs, 12 * s}, {60 * s, heldBy("other", 1), Theirs, 12 * s},
		}},
		"the lease goes, and its holder may live": {nil, []sight{
			{0, heldBy("other", 1), Theirs, 12 * s}, {5 * s, nil, Theirs, 7 * s},
			{5 * s, nil, Theirs, 2 * s}, {2 * s, nil, Free, 0},
		}},
		"the name goes, and its holder may live": {nil, []sight{
			{0, heldBy("other", 1), Theirs, 12 * s}, {5 * s, heldBy("", 1), Theirs, 7 * s},
			{5 * s, heldBy("", 2), Theirs, 12 * s},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Claim{Self: ParseMark("me"), Ended: func(m Mark) bool { return m.ID == "dead" }}
			now := time.Unix(1e9, 0)
			if tt.held != nil {
				c.Took(tt.held)
				c.looked = now
			}
			for i, look := range tt.sights {
				now = now.Add(look.after)
				if result, left := c.Judge(look.lease, now); result != look.result || left != look.left {
					t.Errorf("look %d: result %d, theirs for %v; want %d, %v", i, result, left, look.result, look.left)
				}
			}
		})
	}
}

func TestProcessMarkKnowsWhoHasEnded(t *testing.T) {
	self := NewMark()
	if self.Space == "" {
		t.Skip("processes cannot be told apart here")
	}
	if self.Text() == NewMark().Text() {
		t.Error("two lives have one mark")
	}
	if read := ParseMark(self.Text()); read != self {
		t.Errorf("read back as %+v, want %+v", read, self)
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	_ = stdin.Close()
	_ = child.Wait()
	other := func(change func(*Mark)) Mark { m := self; change(&m); return m }
	for name, tc := range map[string]struct {
		mark Mark
		want bool
	}{
		"this process":                 {self, false},
		"its PID was another's":        {other(func(m *Mark) { m.Start = "1" }), true},
		"its PID is free":              {other(func(m *Mark) { m.PID = child.Process.Pid }), true},
		"another machine":              {other(func(m *Mark) { m.Space, m.PID = "elsewhere", child.Process.Pid }), false},
		"it did not say when it began": {other(func(m *Mark) { m.Start, m.PID = "", child.Process.Pid }), false},
		"text of somebody else":        {ParseMark("thief"), false},
	} {
		if got := self.Ended(tc.mark); got != tc.want {
			t.Errorf("%s: ended is %v, want %v", name, got, tc.want)
		}
	}
}
