// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
)

// defaultWatchTimeout is the longest time until one expectation comes true.
const defaultWatchTimeout = 2 * time.Minute

// EndToEndTestSuiteConfig has the location of the node and the selection of tests.
type EndToEndTestSuiteConfig struct {
	// Kubeconfig is the path of a kubeconfig file. Default $KUBECONFIG, then ~/.kube/config, then the
	// credentials of the test's own pod.
	Kubeconfig string
	// Namespace is the namespace of the pods. Required; it must exist.
	Namespace string
	// NodeName is the name of the provider's node. Required.
	NodeName string

	// WatchTimeout is the longest time until each expectation comes true. Default two minutes.
	WatchTimeout time.Duration

	// Setup, if set, is called once before the suite waits for the node.
	Setup func() error
	// Teardown, if set, is called once after the last test.
	Teardown func() error
	// ShouldSkipTest, if set, is asked for the name of each test; true skips it.
	ShouldSkipTest func(testName string) bool
}

// EndToEndTestSuite is the suite. Its tests are the methods with the name prefix Test; each makes its own pods
// and removes them.
type EndToEndTestSuite struct {
	config EndToEndTestSuiteConfig

	// connect makes the client at the first use, once.
	connect func() (*kubernetes.Clientset, error)
}

// NewEndToEndTestSuite returns the suite for config. It panics when the
// namespace or the name of the node is missing. Several suites may live in one process.
func NewEndToEndTestSuite(config EndToEndTestSuiteConfig) *EndToEndTestSuite {
	if config.Namespace == "" {
		panic("e2e: EndToEndTestSuiteConfig.Namespace is empty; name the namespace for the pods")
	}
	if config.NodeName == "" {
		panic("e2e: EndToEndTestSuiteConfig.NodeName is empty; name the node to test")
	}
	if config.WatchTimeout == 0 {
		config.WatchTimeout = defaultWatchTimeout
	}
	return &EndToEndTestSuite{
		config:  config,
		connect: sync.OnceValues(func() (*kubernetes.Clientset, error) { return newClient(config.Kubeconfig) }),
	}
}

// Run runs the suite: Setup, each test as a subtest of its name, Teardown.
func (s *EndToEndTestSuite) Run(t *testing.T) {
	t.Cleanup(func() {
		if err := s.tearDown(); err != nil {
			t.Error(err)
		}
	})
	s.Setup(t)
	suite := reflect.ValueOf(s)
	for i := range suite.NumMethod() {
		name := suite.Type().Method(i).Name
		test, ok := suite.Method(i).Interface().(func(*testing.T))
		if !ok || !strings.HasPrefix(name, "Test") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if s.ShouldSkipTest(name) {
				t.Skipf("%s is skipped by the configuration of the suite", name)
			}
			test(t)
		})
	}
}

// Setup calls the Setup of the configuration and waits until the node is
// Ready. It ends the test when either does not succeed.
func (s *EndToEndTestSuite) Setup(t *testing.T) {
	t.Helper()
	if s.config.Setup != nil {
		if err := s.config.Setup(); err != nil {
			t.Fatalf("set up the suite: %v", err)
		}
	}
	s.waitForNode(t)
}

// Teardown calls the Teardown of the configuration. It panics when that fails,
// as it has no test to report to; Run reports it.
func (s *EndToEndTestSuite) Teardown() {
	if err := s.tearDown(); err != nil {
		panic(err)
	}
}

func (s *EndToEndTestSuite) tearDown() error {
	if s.config.Teardown == nil {
		return nil
	}
	if err := s.config.Teardown(); err != nil {
		return fmt.Errorf("tear down the suite: %w", err)
	}
	return nil
}

// ShouldSkipTest reports whether the configuration skips the test named testName.
func (s *EndToEndTestSuite) ShouldSkipTest(testName string) bool {
	return s.config.ShouldSkipTest != nil && s.config.ShouldSkipTest(testName)
}
