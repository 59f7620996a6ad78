// SPDX-License-Identifier: Apache-2.0

package main

import "gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"

// programs is empty: the filters of a processor must be made on such a processor, and this has not been done
// here yet. gVisor compiles them at each start.
var programs []precompiledseccomp.Program
