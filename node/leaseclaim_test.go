// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"os/exec"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sight is a look at the lease, and what must be concluded from it.
type sight struct {
	after   time.Duration // since the look before
	lease   *coordinationv1.Lease
	verdict claimVerdict
	left    time.Duration
}

// heldBy is a lease with the mark of a holder, "" for none, at its nth renewal.
func heldBy(holder string, renewal int) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	if holder != "" {
		lease.Annotations = map[string]string{holderAnnotation: parseMark(holder).text()}
	}
	at := metav1.NewMicroTime(time.Unix(int64(renewal), 0))
	lease.Spec.RenewTime = &at
	return lease
}

func givenUp(renewal int) *coordinationv1.Lease {
	lease := heldBy("", renewal)
	lease.Annotations = map[string]string{holderAnnotation: ""}
	return lease
}

// The rules by which a process decides whose the lease is, as stories of what it
// sees. Its own mark is "me"; "dead" is a process that has provably ended.
func TestLeaseClaim(t *testing.T) {
	const s = time.Second
	for name, story := range map[string]struct {
		held   *coordinationv1.Lease // as we wrote it before
		sights []sight
	}{
		"there is no lease":                     {nil, []sight{{0, nil, claimFree, 0}}},
		"nobody has ever named itself":          {nil, []sight{{0, heldBy("", 1), claimFree, 0}}},
		"the last holder gave it up":            {nil, []sight{{0, givenUp(1), claimFree, 0}}},
		"the last holder has ended":             {nil, []sight{{0, heldBy("dead", 1), claimFree, 0}}},
		"it is ours":                            {heldBy("me", 1), []sight{{3 * s, heldBy("me", 1), claimOurs, 0}}},
		"it is ours, and the answer was lost":   {nil, []sight{{0, heldBy("me", 1), claimOurs, 0}}},
		"it was ours and is gone":               {heldBy("me", 1), []sight{{3 * s, nil, claimFree, 0}}},
		"a name without a renewal is no claim":  {heldBy("me", 1), []sight{{3 * s, heldBy("thief", 1), claimOurs, 0}}},
		"our name was taken away":               {heldBy("me", 1), []sight{{3 * s, heldBy("", 1), claimOurs, 0}}},
		"it was taken, and given up since":      {heldBy("me", 1), []sight{{60 * s, givenUp(2), claimFree, 0}}},
		"it was taken while we were away":       {heldBy("me", 1), []sight{{60 * s, heldBy("other", 2), claimTheirs, 12 * s}}},
		"somebody without a name renews it now": {heldBy("me", 1), []sight{{3 * s, heldBy("", 2), claimTheirs, 12 * s}, {2 * s, heldBy("", 2), claimTheirs, 10 * s}}},
		"the holder renews": {nil, []sight{
			{0, heldBy("other", 1), claimTheirs, 12 * s}, {5 * s, heldBy("other", 1), claimTheirs, 7 * s},
			{5 * s, heldBy("other", 2), claimTheirs, 12 * s}, {5 * s, heldBy("other", 2), claimTheirs, 7 * s},
		}},
		"the holder is silent": {nil, []sight{
			{0, heldBy("other", 1), claimTheirs, 12 * s}, {5 * s, heldBy("other", 1), claimTheirs, 7 * s},
			{5 * s, heldBy("other", 1), claimTheirs, 2 * s}, {2 * s, heldBy("other", 1), claimFree, 0},
		}},
		"its clock is an hour behind": {nil, []sight{
			{0, heldBy("other", 3600), claimTheirs, 12 * s}, {5 * s, heldBy("other", 2), claimTheirs, 12 * s},
		}},
		"another one waits too, and gets it": {nil, []sight{
			{0, heldBy("other", 1), claimTheirs, 12 * s}, {5 * s, heldBy("other", 1), claimTheirs, 7 * s},
			{5 * s, heldBy("third", 2), claimTheirs, 12 * s},
		}},
		"what we could not see is no sign of death": {nil, []sight{
			{0, heldBy("other", 1), claimTheirs, 12 * s}, {60 * s, heldBy("other", 1), claimTheirs, 12 * s},
		}},
		"the lease goes, and its holder may live": {nil, []sight{
			{0, heldBy("other", 1), claimTheirs, 12 * s}, {5 * s, nil, claimTheirs, 7 * s},
			{5 * s, nil, claimTheirs, 2 * s}, {2 * s, nil, claimFree, 0},
		}},
		"the name goes, and its holder may live": {nil, []sight{
			{0, heldBy("other", 1), claimTheirs, 12 * s}, {5 * s, heldBy("", 1), claimTheirs, 7 * s},
			{5 * s, heldBy("", 2), claimTheirs, 12 * s},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &leaseClaim{self: parseMark("me"), ended: func(m processMark) bool { return m.ID == "dead" }}
			now := time.Unix(1e9, 0)
			if story.held != nil {
				c.took(story.held)
				c.looked = now
			}
			for i, look := range story.sights {
				now = now.Add(look.after)
				if verdict, left := c.judge(look.lease, now); verdict != look.verdict || left != look.left {
					t.Errorf("look %d: verdict %d, theirs for %v; want %d, %v", i, verdict, left, look.verdict, look.left)
				}
			}
		})
	}
}

func TestProcessMarkKnowsWhoHasEnded(t *testing.T) {
	self := newProcessMark()
	if self.Space == "" {
		t.Skip("processes cannot be told apart here")
	}
	if self.text() == newProcessMark().text() {
		t.Error("two lives have one mark")
	}
	if read := parseMark(self.text()); read != self {
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
	other := func(change func(*processMark)) processMark { m := self; change(&m); return m }
	for name, tc := range map[string]struct {
		mark processMark
		want bool
	}{
		"this process":                 {self, false},
		"its PID was another's":        {other(func(m *processMark) { m.Start = "1" }), true},
		"its PID is free":              {other(func(m *processMark) { m.PID = child.Process.Pid }), true},
		"another machine":              {other(func(m *processMark) { m.Space, m.PID = "elsewhere", child.Process.Pid }), false},
		"it did not say when it began": {other(func(m *processMark) { m.Start, m.PID = "", child.Process.Pid }), false},
		"text of somebody else":        {parseMark("thief"), false},
	} {
		if got := self.ended(tc.mark); got != tc.want {
			t.Errorf("%s: ended is %v, want %v", name, got, tc.want)
		}
	}
}
