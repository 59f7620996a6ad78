// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"
	"time"
)

// TestKnownSchedules runs reduced schedules that once broke something, by their problem.
func TestKnownSchedules(t *testing.T) {
	for name, plan := range map[string]simSchedule{
		// The list from before the orphan's stop contained it beside the wanted pod.
		"an orphan is stopped a second time, as it is in an old list": {Lies: allLie, Steps: []simStep{
			{"create", 1, 0, 0},
			{"create", 2, 0, 300 * time.Millisecond},
			{"stop", 0, 0, 0},
			{"create", 0, 0, 0},
			{"delete by default", 2, 0, 0},
			{"restart without a cache", 0, 0, 0},
			{"create", 2, 0, 0},
			{"delete", 1, 4, 1 * time.Second},
			{"provider hangs", 1, 3, 45 * time.Second},
		}},
		// A list from before the stop contained only the orphan, and the stop by name hit the wanted pod.
		"a wanted pod is stopped in the place of an orphan of its name": {Lies: listsLie, StopTime: time.Second, ShowsAfter: 45 * time.Second, Steps: []simStep{
			{"create", 1, 0, 300 * time.Millisecond},
			{"recreate", 1, 0, 45 * time.Second},
			{"lists lie", 1, 5, 45 * time.Second},
		}},
		// The pod was known to have finished, so its report did not show that it runs.
		"a pod that has finished is told to stop at every answer": {ShowsAfter: 5 * time.Second, Steps: []simStep{
			{"create", 0, 0, 0},
			{"provider's answers are lost", 0, 1, 300 * time.Millisecond},
			{"delete", 0, 1, 0},
		}},
		// The pod may have been created before the restart, and the first NotFound was a lie.
		"a pod of before a restart is removed at the second NotFound": {Lies: allLie, ShowsAfter: 5 * time.Second, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"restart without a cache", 2, 0, 0},
			{"delete", 0, 1, 300 * time.Millisecond},
		}},
		// And the backend hides the pod for longer.
		"a pod of before a restart is removed before it can show": {Lies: allLie, ShowsAfter: 20 * time.Second, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"restart without a cache", 2, 0, 0},
			{"delete", 0, 1, 300 * time.Millisecond},
		}},
		// It was unknown with which labels the pod was created before the restart.
		"the last report of a pod of before a restart takes a label back": {Lies: allLie, Steps: []simStep{
			{"create", 2, 0, 300 * time.Millisecond},
			{"restart without a cache", 0, 0, 0},
			{"label", 2, 0, 0},
			{"delete", 2, 1, 300 * time.Millisecond},
		}},
		"and reports it as Pending": {Lies: allLie, ShowsAfter: 20 * time.Second, SaysPending: true, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"restart without a cache", 2, 0, 0},
			{"delete", 0, 1, 300 * time.Millisecond},
		}},
		// CreatePod received the label, and the report from before the restart arrived later.
		"a late report of before a restart takes a label back": {Lies: allLie, Steps: []simStep{
			{"create", 0, 0, 0},
			{"reports are odd", 0, 1, 0},
			{"create", 1, 0, 300 * time.Millisecond},
			{"restart without a cache", 0, 0, 0},
			{"label", 0, 0, 300 * time.Millisecond},
		}},
		// The pod was polled by name while CreatePod hung: the status was that of its predecessor.
		"a hidden pod has the end of its predecessor": {Silent: true, KeepsEnded: true, ShowsAfter: 20 * time.Second, Steps: []simStep{
			{"create", 1, 0, 300 * time.Millisecond},
			{"delete", 1, 1, 0},
			{"provider hangs", 0, 0, 0},
			{"recreate", 1, 0, 0},
			{"create", 0, 0, 45 * time.Second},
		}},
		// GetPod returned an earlier ended pod for the name of the failed pod.
		"an orphan runs beside a failed pod and an ended one": {KeepsEnded: true, EndedFirst: true, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"create", 1, 0, 0},
			{"recreate", 1, 0, 0},
			{"provider fails", 2, 0, 0},
			{"recreate", 1, 1, 0},
		}},
		// The doubt about all pods ended when a pod was created that no list had lacked yet.
		"a pod in doubt is removed when another one comes": {Lies: allLie, Steps: []simStep{
			{"create", 1, 0, 0},
			{"create", 2, 0, 300 * time.Millisecond},
			{"restart without a cache", 2, 0, 11 * time.Second},
			{"create", 0, 0, 300 * time.Millisecond},
			{"delete", 1, 1, 0},
		}},
		// The time in which the pod was hidden counted when it was missing later.
		"a pod that was reported is missing from its creation on": {Lies: allLie, ShowsAfter: 45 * time.Second, SaysPending: true, Steps: []simStep{
			{"create", 0, 0, 0},
			{"create", 1, 2, 0},
			{"lag", 0, 1, 11 * time.Second},
			{"provider's answers are lost", 0, 4, 45 * time.Second},
			{"lists lie", 2, 1, 0},
			{"start", 2, 1, 45 * time.Second},
		}},
		// The report had no UID, and the pod's status did not show that it was created before the restart.
		"the end of a pod of before a restart is lost": {Lies: allLie, KeepsNoUID: true, Steps: []simStep{
			{"create", 0, 0, 0},
			{"crash with a later effect", 0, 0, 300 * time.Millisecond},
			{"delete", 0, 1, 0},
			{"restart without a cache", 0, 0, 300 * time.Millisecond},
		}},
		// The response to its create was lost, and by name it was mistaken for the pod that had left.
		"a pod is stopped in the place of the one before it": {KeepsNoUID: true, StopTime: time.Second, Steps: []simStep{
			{"create", 1, 0, 300 * time.Millisecond},
			{"delete", 1, 0, 0},
			{"end", 1, 0, 0},
			{"provider's answers are lost", 0, 0, 0},
			{"create", 1, 0, 0},
		}},
		// The response to its stop was lost, and no list showed that it was gone.
		"the second stop of an orphan ends the wanted pod": {ShowsAfter: 5 * time.Second, Steps: []simStep{
			{"create", 2, 0, 300 * time.Millisecond},
			{"recreate", 2, 0, 0},
			{"provider's answers are lost", 0, 1, 45 * time.Second},
		}},
		// The end was reported before the API server could be read, and again without a UID.
		"the end of a pod before the caches are filled is lost": {StopTime: time.Second, Steps: []simStep{
			{"create", 2, 0, 300 * time.Millisecond},
			{"delete", 2, 1, 0},
			{"crash", 0, 0, 0},
			{"requests fail", 0, 3, 0},
			{"start", 0, 4, 0},
			{"provider fails", 1, 1, 11 * time.Second},
		}},
		"and has no UID": {KeepsNoUID: true, Steps: []simStep{
			{"create", 2, 1, 300 * time.Millisecond},
			{"stop", 0, 0, 0},
			{"delete by default", 2, 0, 0},
			{"start", 0, 0, 0},
			{"end", 2, 0, 0},
		}},
		// The daemon crashed during the create, and the next daemon saw no sign of it.
		"a pod that was created anew is hidden at first, and created again": {ShowsAfter: 45 * time.Second, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"create", 0, 0, 45 * time.Second},
			{"crash with a later effect", 0, 0, 0},
			{"lose", 0, 0, 45 * time.Second},
		}},
		// GetPod failed, and an old list contained the previous pod.
		"what an old list has is stopped, and with it the pod that has its name": {Lies: listsLie, PlainErrors: true, ShowsAfter: 5 * time.Second, Steps: []simStep{
			{"create", 0, 0, time.Second},
			{"create", 0, 0, 11 * time.Second},
			{"lists lie", 0, 0, 1 * time.Second},
			{"lists lie", 1, 4, 0},
			{"recreate", 0, 0, 2500 * time.Millisecond},
		}},
		// Three pods had the name: a visible pod that had left, a hidden pod that ran, and the wanted pod. The wanted pod had stopped, and a
		// finalizer held it.
		"what runs beside a pod that has stopped and is held is left alone": {KeepsEnded: true, EndedFirst: true, ShowsAfter: 45 * time.Second, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"delete", 0, 0, 0},
			{"create", 0, 0, 0},
			{"stop", 0, 0, 0},
			{"recreate", 0, 0, 11 * time.Second},
			{"hold", 0, 1, 45300 * time.Millisecond},
			{"start", 1, 0, 46 * time.Second},
			{"stop", 1, 0, 45 * time.Second},
			{"create", 1, 1, 0},
			{"recreate", 0, 0, 0},
		}},
		// The pod that had left had no UID either.
		"what has left is taken for the next pod of its name": {KeepsNoUID: true, StopTime: time.Second, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"delete", 0, 1, 0},
			{"end", 0, 0, 0},
			{"create", 0, 1, 0},
		}},
		// The create had no response, GetPod returned the pod that had left, and the list was empty.
		"a pod is created twice, as a list that lies does not have it": {Lies: listsLie, KeepsEnded: true, EndedFirst: true, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"provider's answers are lost", 0, 0, 0},
			{"requests fail", 0, 0, 0},
			{"delete by default", 0, 0, 0},
			{"lists lie", 1, 0, 0},
			{"create", 0, 0, 300 * time.Millisecond},
		}},
		// It had stopped, and an old list contained it as running, without a UID.
		"what an old list has is taken for the next pod of its name": {KeepsNoUID: true, Lies: allLie, PlainErrors: true, SaysPending: true, Steps: []simStep{
			{"create", 0, 3, 0},
			{"lag", 1, 1, time.Millisecond},
			{"condition", 1, 0, 0},
			{"delete", 0, 2, 0},
			{"catch up", 2, 5, time.Millisecond},
			{"create", 0, 0, time.Second},
			{"lists lie", 0, 5, 2500 * time.Millisecond},
			{"create", 0, 1, time.Millisecond},
		}},
		// It was force-deleted before the backend showed it, and ended while the next pod of the name was polled.
		"the answer of a slow poll is about the pod before": {Silent: true, KeepsEnded: true, ShowsAfter: 20 * time.Second, Steps: []simStep{
			{"create", 2, 0, 2500 * time.Millisecond},
			{"provider is slow", 1, 4, 0},
			{"delete by force", 2, 5, 11 * time.Second},
			{"create", 2, 1, 45 * time.Second},
		}},
		// The daemon before the restart had stopped the previous pod, which was kept and was the only visible one.
		"a pod is polled as ended, as the one before it has": {Silent: true, KeepsEnded: true, Lies: allLie, ShowsAfter: 5 * time.Second, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"provider is slow", 1, 0, 0},
			{"create", 2, 0, 45 * time.Second},
			{"delete by default", 2, 3, 11 * time.Second},
			{"restart without a cache", 1, 1, 1 * time.Second},
			{"create", 2, 3, 1 * time.Second},
		}},
		// It was reported during a slow list, which was a lie.
		"a pod of before a restart is created again, although it is reported": {NodeName: true, Lies: listsLie, PlainErrors: true, ShowsAfter: 20 * time.Second, Steps: []simStep{
			{"create", 0, 1, 45 * time.Second},
			{"create", 2, 5, 11 * time.Second},
			{"stop", 2, 4, 2300 * time.Millisecond},
			{"lists lie", 2, 3, 1300 * time.Millisecond},
			{"start", 1, 5, 0},
			{"provider is slow", 2, 5, 45 * time.Second},
		}},
		// The list was from before the restart, and GetPodStatus failed.
		"a status of before a restart is lost, as an old list has another one": {Lies: listsLie, Steps: []simStep{
			{"create", 1, 1, time.Second},
			{"stop", 0, 0, 0},
			{"lists lie", 2, 5, 0},
			{"status", 1, 0, 0},
			{"provider fails", 2, 4, 0},
			{"start", 0, 1, 2500 * time.Millisecond},
		}},
		// It ended while no daemon ran, and the next daemon, which stopped it, did not find it: no daemon could know how it ended.
		"the end of a deleted pod is denied since the restart": {Lies: allLie, KeepsEnded: true, Steps: []simStep{
			{"create", 2, 0, 300 * time.Millisecond},
			{"stop", 0, 0, 0},
			{"end", 2, 0, 0},
			{"delete", 2, 1, 0},
			{"restart without a cache", 0, 0, 1 * time.Second},
		}},
		// The response to the first create was lost, the create of the changed pod was rejected, and then the first pod appeared.
		"a pod of before a change is taken for the changed one": {ShowsAfter: 45 * time.Second, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"provider's answers are lost", 0, 0, 0},
			{"provider fails", 2, 0, 0},
			{"create", 1, 0, 0},
			{"image", 1, 0, 0},
		}},
		// GetPodStatus returned the status of the ended pod, and GetPod failed with an error without a kind.
		"the end of another pod is believed, as nobody says whose it is": {KeepsEnded: true, EndedFirst: true, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"delete", 0, 0, 0},
			{"create", 0, 0, 0},
			{"stop", 0, 0, 0},
			{"provider fails", 0, 3, 0},
			{"start", 0, 0, 300 * time.Millisecond},
		}},
		// The daemon crashed during the create, GetPod returned the pod that had left, and the list was empty.
		"a pod of before a restart is created again, as a list that lies does not have it": {Lies: listsLie, KeepsEnded: true, EndedFirst: true, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"delete", 0, 1, 300 * time.Millisecond},
			{"crash with a later effect", 0, 0, 0},
			{"create", 0, 0, 0},
			{"lists lie", 2, 0, 0},
			{"start", 0, 0, 300 * time.Millisecond},
		}},
		// The list was from before the status, and GetPodStatus was slow.
		"a status of before a restart is taken back, as an old list has another one": {Lies: listsLie, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"lists lie", 2, 4, 0},
			{"status", 0, 0, 300 * time.Millisecond},
			{"provider is slow", 2, 4, 0},
			{"stop", 0, 0, 0},
			{"start", 0, 0, 45 * time.Second},
		}},
		// One of two pods in doubt was deleted and one recreated, and the new one was too new to be visible.
		"a doubt ends as the pods that it began with are not wanted any more": {Lies: allLie, Steps: []simStep{
			{"create", 0, 1, 0},
			{"create", 1, 0, 300 * time.Millisecond},
			{"restart without a cache", 2, 0, 0},
			{"create", 2, 0, 300 * time.Millisecond},
			{"recreate", 1, 0, 0},
			{"delete by default", 0, 0, 11 * time.Second},
		}},
		// It was asked to stop, and the list that should show whether it is alone under its name was empty.
		"a pod that has left is remembered for ever, as an empty list lacks it": {Lies: allLie, StopTime: time.Second, Steps: []simStep{
			{"lists lie", 0, 0, 0},
			{"create", 0, 0, 300 * time.Millisecond},
			{"create", 2, 0, 0},
			{"end", 2, 0, 0},
			{"delete", 2, 0, 0},
		}},
		// DeletePod did not find it, and two consecutive lists were from before its loss.
		"a pod that is gone is told to stop by each old list that has it": {Lies: listsLie, Steps: []simStep{
			{"create", 0, 0, 300 * time.Millisecond},
			{"lists lie", 1, 5, 0},
			{"lose", 0, 0, 0},
			{"delete", 0, 1, 11 * time.Second},
		}},
		// GetPod returned another pod of the name that was created earlier and became visible late, and the list was empty.
		"a pod that stops is removed, as another one has its name": {Lies: allLie, StopTime: time.Second, ShowsAfter: 5 * time.Second, Steps: []simStep{
			{"create", 0, 0, 3500 * time.Millisecond},
			{"delete", 0, 0, 1 * time.Second},
			{"create", 0, 2, 11 * time.Second},
			{"lists lie", 0, 0, 1 * time.Millisecond},
			{"delete by default", 0, 0, 2500 * time.Millisecond},
		}},
		// Two old lists contained it as running beside the next pod, and after the deletion of that pod its stop was forgotten.
		"what has ended is told to stop a third time": {Lies: listsLie, KeepsEnded: true, Steps: []simStep{
			{"create", 1, 0, 300 * time.Millisecond},
			{"lists lie", 2, 4, 0},
			{"recreate", 1, 0, 45 * time.Second},
			{"delete", 1, 0, 0},
		}},
		// GetPod returned an ended pod of the name, and lists were empty for longer than the stop took.
		"an acknowledged stop counts, as an ended pod hides the one that stops": {Silent: true, Lies: allLie, StopTime: time.Second, KeepsEnded: true, EndedFirst: true, Steps: []simStep{
			{"recreate", 0, 2, 45 * time.Second},
			{"create", 2, 0, 0},
			{"delete by force", 2, 2, 0},
			{"create", 2, 5, 11 * time.Second},
			{"create", 1, 2, 0},
			{"delete by default", 2, 4, 0},
			{"lists lie", 1, 3, 45 * time.Second},
		}},
		// There was no list for a minute, and the node used its copy from before the stop.
		"an ended pod is told to stop again without a list": {Silent: true, KeepsEnded: true, PlainErrors: true, ShowsAfter: 5 * time.Second, SaysPending: true, Steps: []simStep{
			{"create", 0, 0, time.Second},
			{"create", 0, 3, 0},
			{"create", 0, 5, time.Second},
			{"create", 2, 5, 0},
			{"delete", 0, 2, 0},
			{"create", 1, 5, 0},
			{"recreate", 2, 2, 11 * time.Second},
			{"start", 1, 5, 300 * time.Millisecond},
			{"create", 1, 4, 0},
			{"lag", 1, 2, 0},
			{"create", 2, 2, time.Millisecond},
			{"create", 1, 3, 0},
			{"create", 1, 2, time.Second},
			{"cut", 1, 4, 300 * time.Millisecond},
			{"restart without a cache", 2, 5, 0},
			{"provider hangs", 0, 5, 11 * time.Second},
			{"provider is slow", 2, 5, time.Second},
			{"create", 2, 0, time.Second},
			{"restart without a cache", 0, 4, 45 * time.Second},
		}},
		// Empty lists made the node forget its stop request.
		"an ended pod is told to stop again after each empty list": {Lies: allLie, StopTime: time.Second, KeepsEnded: true, Steps: []simStep{
			{"create", 0, 0, 11 * time.Second},
			{"create", 2, 0, 0},
			{"create", 1, 0, 0},
			{"delete by default", 0, 0, 0},
			{"lists lie", 0, 3, 45 * time.Second},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // simultaneous events may happen in any order
				for _, problem := range simulate(t, plan) {
					t.Fatal(problem)
				}
			}
		})
	}
}
