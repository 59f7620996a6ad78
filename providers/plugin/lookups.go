// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	rpc "github.com/virtual-kubelet/virtual-kubelet/providerrpc/proto/virtualkubelet/provider/v1"
	"github.com/virtual-kubelet/virtual-kubelet/providerrpc/wire"
)

// maxQuestions limits the concurrent questions of a plugin.
const maxQuestions = 64

// answerLookups answers the questions of the plugin.
func (p *plugin) answerLookups(ctx context.Context, s *session) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	stream, err := s.Lookups(ctx)
	if err != nil {
		return p.watchError(ctx, s, "questions", err)
	}
	var sending sync.Mutex
	slots := make(chan struct{}, maxQuestions)
	for {
		question, err := stream.Recv()
		if err != nil {
			return p.watchError(ctx, s, "questions", err)
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			answer := p.answerQuestion(ctx, s, question)
			sending.Lock()
			defer sending.Unlock()
			_ = stream.Send(answer) // Send fails after the end of the stream, which Recv reports
		})
	}
}

// answerQuestion answers one question of the plugin. The sources of the answers refuse pods of other nodes.
func (p *plugin) answerQuestion(ctx context.Context, s *session, q *rpc.LookupQuestion) *rpc.LookupAnswer {
	a := &rpc.LookupAnswer{Id: q.GetId()}
	pod := &corev1.Pod{}
	err := wire.Unmarshal(s.hello.GetEncoding(), q.GetPod(), pod)
	if err == nil {
		err = p.lookUp(ctx, pod, q, a)
	}
	if err != nil {
		a.Error, a.Detail, a.ObjectMissing = err.Error(), wire.Detail(err), apierrors.IsNotFound(err)
	}
	return a
}

func (p *plugin) lookUp(ctx context.Context, pod *corev1.Pod, q *rpc.LookupQuestion, a *rpc.LookupAnswer) error {
	var object any
	var err error
	switch ask := q.GetAsk().(type) {
	case *rpc.LookupQuestion_TokenSourceJson:
		return p.answerToken(ctx, pod, ask.TokenSourceJson, a)
	case *rpc.LookupQuestion_PullCredentials:
		return p.answerLogins(ctx, pod, a)
	case *rpc.LookupQuestion_ConfigMap:
		if p.objects == nil {
			return p.undeclaredError()
		}
		object, err = p.objects.ConfigMap(ctx, pod, ask.ConfigMap)
	case *rpc.LookupQuestion_Secret:
		if p.objects == nil {
			return p.undeclaredError()
		}
		object, err = p.objects.Secret(ctx, pod, ask.Secret)
	case *rpc.LookupQuestion_Container:
		if p.objects == nil {
			return p.undeclaredError()
		}
		object, err = p.objects.Container(ctx, pod, ask.Container)
	default:
		return errdefs.InvalidInput("the plugin sends a request that this virtual-kubelet does not know: update virtual-kubelet")
	}
	if err != nil {
		return err
	}
	a.ObjectJson, err = json.Marshal(object)
	return err
}

// undeclaredError returns the error for questions about objects by a plugin without ABILITY_POD_OBJECTS, whose
// pods are sent with a resolved environment.
func (p *plugin) undeclaredError() error {
	return errdefs.InvalidInputf("plugin %s asks for objects and does not declare ABILITY_POD_OBJECTS", p.agreed.name)
}

func (p *plugin) answerToken(ctx context.Context, pod *corev1.Pod, source []byte, a *rpc.LookupAnswer) error {
	if p.tokens == nil {
		return errors.New("this node has no tokens for pods")
	}
	projection := &corev1.ServiceAccountTokenProjection{}
	if err := json.Unmarshal(source, projection); err != nil {
		return errdefs.InvalidInputf("decode the source of a token: %w", err)
	}
	token, err := p.tokens.Token(ctx, pod, projection)
	if err != nil {
		return fmt.Errorf("token: %w", err)
	}
	a.Token = &rpc.Token{Token: token.Token, ExpiresUnixNano: token.ExpiresAt.UnixNano(), RefreshUnixNano: token.RefreshAt.UnixNano()}
	return nil
}

func (p *plugin) answerLogins(ctx context.Context, pod *corev1.Pod, a *rpc.LookupAnswer) error {
	if p.credentials == nil {
		return errors.New("this node has no credentials for images")
	}
	all, err := p.credentials.PullCredentials(ctx, pod)
	for _, c := range all {
		a.Credentials = append(a.Credentials, &rpc.RegistryCredential{
			Registry: c.Registry, Username: c.Username, Password: c.Password, IdentityToken: c.IdentityToken, RegistryToken: c.RegistryToken,
		})
	}
	return err
}
