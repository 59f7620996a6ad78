// SPDX-License-Identifier: Apache-2.0

package accessreview

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
)

// api simulates an API server whose authorizer knows the pod only after the given number of reviews.
func api(user string, knows int) (client *fake.Clientset, questions *int) {
	client, questions = fake.NewClientset(), new(int)
	client.PrependReactor("create", "selfsubjectreviews", func(clientgotesting.Action) (bool, runtime.Object, error) {
		if user == "" {
			return true, nil, errors.New("no answer")
		}
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}}}, nil
	})
	client.PrependReactor("create", "selfsubjectaccessreviews", func(clientgotesting.Action) (bool, runtime.Object, error) {
		*questions++
		return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: *questions > knows}}, nil
	})
	return client, questions
}

func TestWait(t *testing.T) {
	for _, tt := range []struct {
		name, user string
		knows      int
		questions  int
		took       time.Duration
	}{
		{"known already", "system:node:n", 0, 1, 0},
		{"known soon", "system:node:n", 3, 4, 70 * time.Millisecond},
		{"never", "system:node:n", 1 << 20, 16, Patience},
		{"a service account", "system:serviceaccount:a:b", 1 << 20, 0, 0},
		{"nobody knows who", "", 1 << 20, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, questions := api(tt.user, tt.knows)
			begin := time.Now()
			New(client).Wait(t.Context(), authorizationv1.ResourceAttributes{})
			if took := time.Since(begin); *questions != tt.questions || took != tt.took {
				t.Errorf("%s: got %d questions in %v, want %d in %v", tt.name, *questions, took, tt.questions, tt.took)
			}
		})
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	client, _ := api("system:node:n", 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	New(client).Wait(ctx, authorizationv1.ResourceAttributes{})
	(*Checker)(nil).Wait(t.Context(), authorizationv1.ResourceAttributes{})
}
