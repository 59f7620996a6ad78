// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

func node(name, uid, version string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

var errOwnWatch = errors.New("a watch of its own")

// direct is the client for requests that are not shared.
type direct struct{ corev1client.NodeInterface }

func (direct) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, errOwnWatch
}

func follow(t *testing.T, n *Nodes, name, version string) watch.Interface {
	t.Helper()
	w, err := n.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// shown returns the next event as text, "" if there is none, and "end" after the last event.
func shown(w watch.Interface) string {
	select {
	case e, open := <-w.ResultChan():
		if !open {
			return "end"
		}
		n := e.Object.(*corev1.Node)
		return string(e.Type) + " " + n.Name + "/" + string(n.UID) + "@" + n.ResourceVersion
	default:
		return ""
	}
}

func expectNext(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	for _, next := range append(want, "") {
		if got := shown(w); got != next {
			t.Errorf("the watch shows %q, want %q", got, next)
		}
	}
}

func TestWatchOfOneNode(t *testing.T) {
	n := NewNodes(direct{}, nil, []string{"a", "b"})
	r := (*nodeRouter)(n)
	early := follow(t, n, "a", "5")
	_ = r.Replace([]any{node("a", "1", "5"), node("b", "2", "6"), node("foreign", "3", "7")}, "8")
	expectNext(t, early, "MODIFIED a/1@5")
	_ = r.Update(node("a", "1", "9"))
	_ = r.Update(node("b", "2", "10"))
	expectNext(t, early, "MODIFIED a/1@9")

	expectNext(t, follow(t, n, "a", "9"))                       // no new states
	expectNext(t, follow(t, n, "a", "5"), "MODIFIED a/1@9")     // the missed event
	expectNext(t, follow(t, n, "a", "words"), "MODIFIED a/1@9") // versions that cannot be compared

	_ = r.Delete(node("a", "1", "11"))
	expectNext(t, early, "DELETED a/1@11")
	expectNext(t, follow(t, n, "a", "9"), "DELETED a/1@11")
	_ = r.Add(node("a", "4", "12"))
	expectNext(t, early, "MODIFIED a/4@12")

	if _, err := n.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=foreign"}); !errors.Is(err, errOwnWatch) {
		t.Errorf("a watch of a foreign node: got %v, want one of its own", err)
	}
	if _, err := n.Watch(t.Context(), metav1.ListOptions{}); !errors.Is(err, errOwnWatch) {
		t.Errorf("a watch of all nodes: got %v, want one of its own", err)
	}
}

// TestNodeGoneWhileNobodyWatched: a node that existed before is missing in a list. The watch of this node gets one DELETED event.
func TestNodeGoneWhileNobodyWatched(t *testing.T) {
	n := NewNodes(direct{}, nil, []string{"a", "b"})
	r := (*nodeRouter)(n)
	_ = r.Replace([]any{node("a", "1", "5"), node("b", "2", "6")}, "8")
	a, b := follow(t, n, "a", "5"), follow(t, n, "b", "6")
	_ = r.Replace([]any{node("b", "2", "6")}, "20")
	expectNext(t, a, "DELETED a/1@20")
	expectNext(t, b)
	_ = r.Replace([]any{node("b", "2", "6")}, "21")
	expectNext(t, a) // the event comes once
}

func TestSlowReaderBeginsAnew(t *testing.T) {
	n := NewNodes(direct{}, nil, []string{"a"})
	r := (*nodeRouter)(n)
	w := follow(t, n, "a", "0")
	for _, version := range []string{"1", "2", "3", "4", "5", "6"} {
		_ = r.Update(node("a", "1", version))
	}
	for got := shown(w); got != "end"; got = shown(w) {
		if got == "" {
			t.Fatal("the watch of somebody who does not read goes on")
		}
	}
	w.Stop() // again: it is no mistake
	expectNext(t, follow(t, n, "a", "4"), "MODIFIED a/1@6")
}

func TestStop(t *testing.T) {
	n := NewNodes(direct{}, nil, []string{"a"})
	w := follow(t, n, "a", "0")
	w.Stop()
	if got := shown(w); got != "end" {
		t.Errorf("after Stop the watch shows %q", got)
	}
	_ = (*nodeRouter)(n).Update(node("a", "1", "1"))
}
