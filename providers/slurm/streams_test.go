// SPDX-License-Identifier: Apache-2.0

package slurm

import (
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
)

// terminal is a session on a terminal.
type terminal struct{}

func (terminal) Stdin() io.Reader            { return strings.NewReader("") }
func (terminal) Stdout() io.WriteCloser      { return nil }
func (terminal) Stderr() io.WriteCloser      { return nil }
func (terminal) TTY() bool                   { return true }
func (terminal) Resize() <-chan api.TermSize { return nil }

func TestTerminalIsRefused(t *testing.T) {
	err := (&driver{}).Exec(t.Context(), service.Target[*instance]{}, []string{"sh"}, terminal{})
	if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "leave -t away") {
		t.Errorf("got %v, want what to do instead", err)
	}
}

func TestStatisticsAreOfNoPod(t *testing.T) {
	p := home(&driver{in: cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}}})
	got, err := p.GetStatsSummary(t.Context())
	if err != nil || got.Node.NodeName != "n" || len(got.Pods) > 0 {
		t.Errorf("got %+v, %v, want the node only", got, err)
	}
}

// silent is a session without input and output.
type silent struct{ terminal }

func (silent) TTY() bool { return false }
