// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"flag"
	"fmt"
	"io"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	// Metrics of all components, as their own programs register them.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// LogTo sends the log of all Kubernetes components in this process to w. Verbosity is klog's: 0 for events, 2
// for an operator of the cluster, 4 and more for a debugger.
func LogTo(w io.Writer, verbosity int) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	args := []string{"-logtostderr=false", "-alsologtostderr=false", "-one_output=true", "-stderrthreshold=FATAL", "-v=" + strconv.Itoa(verbosity)}
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("set up log: %w", err)
	}
	klog.SetOutput(w)
	// The components call old API versions on purpose; the warnings about it are not for a user.
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	return nil
}
