// SPDX-License-Identifier: Apache-2.0

// Package programs names the programs of the conformance run: Kubernetes' end-to-end suite and its other
// requirements. Nothing imports it; its module pins the versions, and hack/build-conformance.sh builds them.
package programs

import (
	_ "k8s.io/kubernetes/test/e2e" // The suite itself is a test, so it cannot be a tool of this module.
)
