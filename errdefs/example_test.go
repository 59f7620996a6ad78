// SPDX-License-Identifier: Apache-2.0

package errdefs_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// An error of a service gets a kind, which determines the action of the controllers: a missing pod is gone, a pod that can never run fails, and all
// other errors are retried.
func Example() {
	gone := errdefs.AsNotFound(errors.New("cloud: 404 group g1"))
	fmt.Println(errdefs.IsNotFound(fmt.Errorf("delete pod default/web: %w", gone)))

	never := errdefs.InvalidInputf("create pod default/web: the cloud has no host network")
	fmt.Println(errdefs.IsInvalidInput(never))

	busy := errdefs.RetryAfter(errors.New("cloud: 429 Too Many Requests"), 20*time.Second)
	fmt.Println(errdefs.RetryAfterOf(busy))
	// Output:
	// true
	// true
	// 20s true
}
