// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// scenarios are histories, with the invariants that each history breaks.
var scenarios = []struct {
	name   string
	steps  []func(*scenario)
	breaks []string
}{
	{"a whole life", steps(exists("a"), start("a", "1"), report("a", runningContainers("", 0)), shows("a", runningContainers("", 0)), deleted("a"),
		destroy("a", "1"), stop("a", "1"), report("a", ended(corev1.PodSucceeded, 0)), shows("a", ended(corev1.PodSucceeded, 0)), removed("a")), nil},

	{"a second instance", steps(exists("a"), start("a", "1"), start("a", "2")), []string{"S1"}},
	{"a second instance after the first", steps(exists("a"), start("a", "1"), stop("a", "1"), start("a", "2")), nil},
	{"a second instance that the harness started", steps(exists("a"), start("a", "1"), extra("a", "p", "2")), nil},

	{"new starts while old runs", steps(exists("a"), start("a", "1"), deleted("a"), exists("b"), start("b", "2")), []string{"S2"}},
	{"new starts after old", steps(exists("a"), start("a", "1"), deleted("a"), stop("a", "1"), exists("b"), start("b", "2")), nil},
	{"new starts while old runs that was removed by force", steps(exists("a"), start("a", "1"), forced("a"), exists("b"), start("b", "2")), nil},

	{"removed while it runs", steps(exists("a"), start("a", "1"), deleted("a"), removed("a"), stop("a", "1")), []string{"S3"}},
	{"removed after the stop", steps(exists("a"), start("a", "1"), deleted("a"), stop("a", "1"), removed("a")), nil},
	{"removed by force", steps(exists("a"), start("a", "1"), forced("a")), nil},
	{"removed and never started", steps(exists("a"), deleted("a"), removed("a")), nil},

	{"terminal becomes running", steps(exists("a"), stop("a", ""), shows("a", ended(corev1.PodFailed, 1)), shows("a", runningContainers("", 0))), []string{"S4", "S4"}},
	{"failed becomes succeeded", steps(exists("a"), stop("a", ""), shows("a", ended(corev1.PodFailed, 1)), shows("a", ended(corev1.PodSucceeded, 0))), []string{"S4"}},
	{"late exit code", steps(exists("a"), stop("a", ""), shows("a", ended(corev1.PodFailed, 1)), shows("a", ended(corev1.PodFailed, 42))), nil},
	{"restart count falls", steps(shows("a", runningContainers("", 3)), shows("a", runningContainers("", 2))), []string{"S4"}},
	{"restart count rises", steps(shows("a", runningContainers("", 2)), shows("a", runningContainers("", 3))), nil},
	{"starts after its end", steps(exists("a"), stop("a", ""), shows("a", ended(corev1.PodFailed, 1)), start("a", "1")), []string{"S4"}},

	{"last status lost", steps(exists("a"), report("a", runningContainers("1", 0)), shows("a", runningContainers("1", 0)), report("a", runningContainers("2", 0))), []string{"S5"}},
	{"last status shown", steps(exists("a"), report("a", runningContainers("1", 0)), report("a", runningContainers("2", 0)), shows("a", runningContainers("2", 0))), nil},
	{"older overwrites newer", steps(exists("a"), report("a", runningContainers("1", 0)), report("a", runningContainers("2", 0)),
		shows("a", runningContainers("2", 0)), shows("a", runningContainers("1", 0)), shows("a", runningContainers("2", 0))), []string{"S5"}},
	{"what the backend has overwrites late reports of what it had", steps(exists("a"), has("a", runningContainers("1", 0)), has("a", runningContainers("2", 0)),
		report("a", runningContainers("2", 0)), shows("a", runningContainers("2", 0)), report("a", runningContainers("1", 0)), shows("a", runningContainers("1", 0)), shows("a", runningContainers("2", 0))), nil},
	{"what the backend had overwrites what it has", steps(exists("a"), has("a", runningContainers("1", 0)), report("a", runningContainers("1", 0)), has("a", runningContainers("2", 0)),
		report("a", runningContainers("2", 0)), shows("a", runningContainers("2", 0)), shows("a", runningContainers("1", 0)), shows("a", runningContainers("2", 0))), []string{"S5"}},
	{"terminal status lost to an older one", steps(exists("a"), report("a", ended(corev1.PodFailed, 1)), report("a", runningContainers("", 0)), shows("a", runningContainers("", 0))), []string{"S5"}},
	{"terminal status with a container that runs", steps(exists("a"), report("a", endedRunning), shows("a", corev1.PodStatus{Phase: corev1.PodSucceeded})), nil},
	{"terminal status outlives an older one", steps(exists("a"), report("a", ended(corev1.PodFailed, 1)), report("a", runningContainers("", 0)), shows("a", ended(corev1.PodFailed, 1))), nil},
	{"another pod of the UID ends", steps(exists("a"), report("a", runningContainers("", 0)), shows("a", runningContainers("", 0)), func(s *scenario) {
		end := ended(corev1.PodFailed, 1)
		s.add(ledger.Entry{Verb: ledger.Report, UID: "a", Name: "q", Status: &end})
	}), nil},
	{"removed without the final status", steps(exists("a"), report("a", runningContainers("", 0)), shows("a", runningContainers("", 0)), deleted("a"), report("a", ended(corev1.PodFailed, 1)), removed("a")), []string{"S5"}},
	{"the end comes before the status settled", steps(exists("a"), report("a", runningContainers("", 0)), func(s *scenario) { s.Settle = time.Hour }), nil},
	{"the node has sync error to tell of", steps(exists("a"), report("a", runningContainers("", 0)), show("a", func(p *corev1.Pod) {
		p.Status = runningContainers("update failed", 0)
		p.Status.Reason = "ProviderFailed"
	})), nil},

	{"label of others lost", steps(exists("a"), others("a", func(p *corev1.Pod) { p.Labels = map[string]string{"k": "v"} }), show("a", func(p *corev1.Pod) { p.Labels = nil })), []string{"S6"}},
	{"condition of others overwritten", steps(exists("a"),
		others("a", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: "theirs", Status: corev1.ConditionTrue}}
		}),
		show("a", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: "theirs", Status: corev1.ConditionFalse}}
		})), []string{"S6"}},
	{"removed finalizer comes back", steps(show("a", func(p *corev1.Pod) { p.Finalizers = []string{"f"} }), others("a", func(p *corev1.Pod) { p.Finalizers = nil }),
		show("a", func(p *corev1.Pod) { p.Finalizers = []string{"f"} })), []string{"S6"}},
	{"others change their own", steps(exists("a"), others("a", func(p *corev1.Pod) { p.Annotations = map[string]string{"k": "1"} }),
		others("a", func(p *corev1.Pod) { p.Annotations = map[string]string{"k": "2"} }), shows("a", runningContainers("", 0))), nil},

	{"wanted pod destroyed", steps(exists("a"), start("a", "1"), destroy("a", "1")), []string{"S7"}},
	{"wanted pod destroyed by the name of another", steps(exists("a"), start("a", "1"), destroy("b", "1")), []string{"S7"}},
	{"destroyed before it was deleted", steps(exists("a"), start("a", "1"), destroy("a", "1"), deleted("a")), []string{"S7"}},
	{"destroyed after it was removed by force", steps(exists("a"), start("a", "1"), forced("a"), destroy("a", "1")), nil},
	{"unknown pod destroyed at once", steps(extra("u", "u", "1"), destroy("u", "1")), []string{"S7"}},
	{"unknown pod destroyed after a while", steps(extra("u", "u", "1"), later(time.Minute), destroy("u", "1")), nil},
	{"other pod of the UID destroyed after a while", steps(exists("a"), start("a", "1"), extra("a", "p2", "2"), later(time.Minute), destroy("a", "2")), nil},
	{"foreign pod destroyed", steps(foreign("1"), later(time.Hour), destroy("x", "1")), []string{"S7"}},
	{"second instance that the harness started destroyed", steps(exists("a"), start("a", "1"), extra("a", "p", "2"), destroy("a", "2")), nil},
	{"rejected and stopped", steps(exists("a"), start("a", "1"), rejects("a"), destroy("a", "1")), nil},
	{"destroyed by the name of one that was rejected", steps(exists("a"), start("a", "1"), rejects("b"), destroy("b", "1")), []string{"S7"}},
	{"destroyed while the node drains", steps(exists("a"), start("a", "1"), func(s *scenario) { s.Drained = s.now }, destroy("a", "1"), show("a", failedBy)), nil},
	{"destroyed at its active deadline", steps(show("a", func(p *corev1.Pod) {
		seconds := int64(30)
		p.Spec.ActiveDeadlineSeconds = &seconds
		p.Status.StartTime = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	}), start("a", "1"), later(time.Minute), destroy("a", "1")), nil},
	{"destroyed before its active deadline", steps(show("a", func(p *corev1.Pod) {
		seconds := int64(300)
		p.Spec.ActiveDeadlineSeconds = &seconds
		p.Status.StartTime = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	}), start("a", "1"), later(time.Minute), destroy("a", "1")), []string{"S7"}},

	{"failed for an error that passes", steps(exists("a"), show("a", failedBy)), []string{"S8"}},
	{"failed while it runs", steps(exists("a"), start("a", "1"), show("a", failedBy)), []string{"S8"}},
	{"failed because it is gone", steps(exists("a"), start("a", "1"), stop("a", "1"), show("a", failedBy)), nil},
	{"failed by the word of others", steps(exists("a"), others("a", failedBy)), nil},
	{"failed before the history began", steps(show("a", failedBy)), nil},
}

func TestCheckersJudgeScenarios(t *testing.T) {
	for _, tt := range scenarios {
		t.Run(tt.name, func(t *testing.T) {
			for _, numbered := range []bool{true, false} { // without numbers, the time decides
				h := tell(tt.steps...)
				for i := range h.Ledger {
					if !numbered {
						h.Ledger[i].Seq = 0
					}
				}
				var got []string
				violations := ledger.Check(h)
				for _, v := range violations {
					got = append(got, v.Invariant)
				}
				if !slices.Equal(got, tt.breaks) {
					t.Errorf("numbered %v: breaks %q, want %q: %v", numbered, got, tt.breaks, violations)
				}
			}
		})
	}
}

func TestEveryCheckerIsBrokenByAScenario(t *testing.T) {
	broken := map[string]bool{}
	for _, tt := range scenarios {
		for _, name := range tt.breaks {
			broken[name] = true
		}
	}
	for name := range ledger.Checkers() {
		if !broken[name] {
			t.Errorf("no scenario breaks %s", name)
		}
	}
}

func TestCheckLeavesOutWhatIsNamed(t *testing.T) {
	h := tell(exists("a"), start("a", "1"), start("a", "2"))
	if got := ledger.Check(h, "S1"); len(got) != 0 {
		t.Errorf("got %v, want nothing but S1 to be broken", got)
	}
}
