// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestProblemsAreToldAtOnceInOneOrder(t *testing.T) {
	p := Problems{Provider: "toy"}
	if err := p.Err(); err != nil {
		t.Errorf("without a problem: got %v", err)
	}
	p.Add("region: %q: want a name", "?")
	p.Add("caFile: %w", fs.ErrNotExist)
	err := p.Err()
	if want := "toy provider: caFile: file does not exist\ntoy provider: region: \"?\": want a name"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the cause of a problem is lost")
	}
}

// TestProblemsOfFields checks what each check of a field refuses, and the default of a duration.
func TestProblemsOfFields(t *testing.T) {
	good := Problems{Provider: "toy"}
	good.ClusterName("home-1", "TOY_CLUSTER")
	good.HTTPS("endpoint", "https://toy.example")
	var unset, zero metav1.Duration
	good.Wait("every", &unset, time.Minute)
	if err := good.Err(); err != nil || unset.Duration != time.Minute {
		t.Errorf("got %v, and %s", err, unset.Duration)
	}
	zero.Duration = -1
	for want, check := range map[string]func(*Problems){
		"clusterName: \"A\": ":                    func(p *Problems) { p.ClusterName("A", "TOY_CLUSTER") },
		"in TOY_CLUSTER":                          func(p *Problems) { p.ClusterName("", "TOY_CLUSTER") },
		"endpoint: \"http://toy.example\": want ": func(p *Problems) { p.HTTPS("endpoint", "http://toy.example") },
		"endpoint: \"https://\": want ":           func(p *Problems) { p.HTTPS("endpoint", "https://") },
		"every: is -1ns, want 0 ":                 func(p *Problems) { p.Wait("every", &zero, time.Minute) },
	} {
		p := Problems{Provider: "toy"}
		if check(&p); p.Err() == nil || !strings.Contains(p.Err().Error(), want) {
			t.Errorf("got %v, want %q", p.Err(), want)
		}
	}
}
