// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

// The answer to the first CreatePod is lost. A caller that repeats the call without a look at the backend has
// the pod twice, and the ledger shows this.
func Example() {
	ctx := context.Background()
	backend := memory.New()
	backend.Inject(memory.Fault{Method: memory.Create, Times: 1, LoseAnswer: true})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u1"}}

	fmt.Println("first:", backend.CreatePod(ctx, pod))
	fmt.Println("second:", backend.CreatePod(ctx, pod))
	fmt.Println("instances:", backend.Instances("u1"))
	for _, v := range ledger.Check(backend.Recorder.History()) {
		fmt.Println(v.Invariant, v.Text)
	}
	// Output:
	// first: create default/web: the answer is lost: backend is not well
	// second: <nil>
	// instances: [i1 i2]
	// S1 instance i2 starts while instance i1 runs
}
