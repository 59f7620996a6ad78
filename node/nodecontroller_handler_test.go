// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// statusRefused is a fault: status writes fail.
func statusRefused(_ context.Context, request string) error {
	if strings.HasPrefix(request, "patch node/status") {
		return errAPIDown
	}
	return nil
}

func TestStatusErrorHandler(t *testing.T) {
	refused := errors.New("handler refuses")
	for name, test := range map[string]struct {
		answer error
		writes int // status writes within the first 150 ms
	}{
		"handled means one more try":  {nil, 2},
		"refused means no second try": {refused, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newNodeAPI(t)
				p := &pingScript{}
				var seen []error
				startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40),
					WithNodeStatusUpdateErrorHandler(func(_ context.Context, err error) error {
						seen = append(seen, err)
						return test.answer
					}))
				api.taken("")
				api.setFault(statusRefused)
				node := testNode()
				node.Status.Conditions[0].Message = "new"
				p.say(node)
				time.Sleep(150 * time.Millisecond)
				synctest.Wait()
				if len(seen) != 1 || !errors.Is(seen[0], errAPIDown) {
					t.Errorf("the handler saw %v, want the one error", seen)
				}
				if n := len(api.taken("patch node/status")); n != test.writes {
					t.Errorf("%d status writes, want %d", n, test.writes)
				}
				api.setFault(nil)
				time.Sleep(reconcilerMaxRetry)
				if got := nodeCondition(api.node(), corev1.NodeReady).Message; got != "new" {
					t.Errorf("message is %q after the fault, want \"new\"", got)
				}
			})
		})
	}
}

// The handler belongs to the program. Its bug must not end the updates of the node while the lease is still renewed.
func TestPanicInErrorHandlerIsARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		p := &pingScript{}
		c, _ := startNode(t, p, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40),
			WithNodeStatusUpdateErrorHandler(func(context.Context, error) error { panic("nil map") }))
		api.setFault(statusRefused)
		node := testNode()
		node.Status.Conditions[0].Message = "new"
		p.say(node)
		time.Sleep(time.Second)
		api.setFault(nil)
		time.Sleep(reconcilerMaxRetry)
		if got := nodeCondition(api.node(), corev1.NodeReady).Message; got != "new" || isClosed(c.Done()) {
			t.Errorf("message is %q after the fault, want \"new\" and a controller that runs", got)
		}
	})
}

// An uncaught panic must end the process, and must not wait for the goroutines of Run.
func TestPanicInRunIsNotHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		api.setFault(func(_ context.Context, request string) error {
			if request == "get node" {
				panic("bug of the client")
			}
			return nil
		})
		c, err := NewNodeController(&pingScript{}, testNode(), api.nodes, WithNodeEnableLeaseV1(api.leases, 40))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		defer func() {
			if got := recover(); got != "bug of the client" || ctx.Err() != nil {
				t.Errorf("Run panicked with %v, context error %v; want the panic of the client at once", got, ctx.Err())
			}
		}()
		_ = c.Run(ctx)
	})
}

func TestErrorHandlerIsToldOfADeletedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newNodeAPI(t)
		var seen []error
		startNode(t, &pingScript{}, testNode(), api, WithNodeEnableLeaseV1(api.leases, 40),
			WithNodeStatusUpdateErrorHandler(func(_ context.Context, err error) error {
				seen = append(seen, err)
				return err
			}))
		if len(seen) != 0 {
			t.Fatalf("the handler saw %v at registration, want nothing", seen)
		}
		api.deleteNode()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(seen) != 1 || !apierrors.IsNotFound(seen[0]) {
			t.Errorf("the handler saw %v, want one not-found error", seen)
		}
		if api.node().UID != "uid-2" {
			t.Error("the node is not registered again when the handler returns an error")
		}
	})
}
