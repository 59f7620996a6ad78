// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// definitionThing is the prefix of definitions among the things of this node. All other things are secrets.
const definitionThing = "definition/"

const (
	// sweepEvery is the time between sweeps, which look for definitions and secrets that no pod needs.
	// sweepAgain is the time after a failed sweep.
	sweepEvery, sweepAgain = time.Hour, 5 * time.Minute
	// sharedFor is how long a shared thing stays after its last use. ownFor is how long a thing of a single pod
	// stays if this node does not know the pod: the pod may be about to be made.
	sharedFor, ownFor = 24 * time.Hour, time.Hour
)

// thing is a definition or a secret.
type thing struct {
	arn     string            // "" if the service must be asked; for the key of names, the key
	text    [sha256.Size]byte // the digest of the stored text, for a secret of one pod
	used    time.Time         // the last use; zero if it is unknown
	secrets []string          // the names of the secrets of a definition; nil if they are unknown
}

// things records the definitions and secrets of this node, as far as this process knows them. So another replica of a pod needs no
// request for them.
type things struct {
	turn chan struct{} // held during a lookup or a create, so that many replicas cause only one

	mu  sync.Mutex
	all map[string]thing // guarded by mu; keyed by the name of a secret, or definitionThing and family
}

func newThings() things { return things{turn: make(chan struct{}, 1), all: map[string]thing{}} }

// get returns the record of a thing.
func (t *things) get(name string) thing {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[name]
}

// set changes the record of a thing.
func (t *things) set(name string, change func(*thing)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[name]
	change(&one)
	if one.arn == "" && one.used.IsZero() && one.secrets == nil {
		delete(t.all, name)
		return
	}
	t.all[name] = one
}

// once returns the ARN of a thing: the known ARN, or the result of find. Only one caller at a time runs find.
func (t *things) once(ctx context.Context, name string, find func() (string, error)) (string, error) {
	if arn := t.get(name).arn; arn != "" {
		return arn, nil
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if arn := t.get(name).arn; arn != "" {
		return arn, nil
	}
	arn, err := find()
	if err == nil {
		t.set(name, func(one *thing) { one.arn = arn })
	}
	return arn, err
}

// mine returns the ARN of the secret of one pod: the known ARN if the text is the same, or the result of keep.
// Each keep makes a new version of the secret, and Secrets Manager allows a hundred versions.
func (t *things) mine(s secret, keep func() (string, error)) (string, error) {
	sum := sha256.Sum256([]byte(s.text))
	if known := t.get(s.name); known.arn != "" && known.text == sum {
		return known.arn, nil
	}
	t.lose(s.name) // after a failure, the stored text is unknown
	arn, err := keep()
	if err == nil {
		t.set(s.name, func(one *thing) { one.arn, one.text = arn, sum })
	}
	return arn, err
}

// lose drops the ARN of a thing, so that the service is asked again.
func (t *things) lose(name string) { t.set(name, func(one *thing) { one.arn = "" }) }

// loseShared drops the ARNs of all things but the secrets of single pods.
func (t *things) loseShared() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, one := range t.all {
		if one.text == [sha256.Size]byte{} {
			one.arn = ""
			t.all[name] = one
		}
	}
}

// withPrefix returns the names of the things that have the prefix, and an ARN.
func (t *things) withPrefix(prefix string) (names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, one := range t.all {
		if strings.HasPrefix(name, prefix) && one.arn != "" {
			names = append(names, name)
		}
	}
	return names
}

// use records that things are used.
func (t *things) use(at time.Time, names ...string) {
	for _, name := range names {
		t.set(name, func(one *thing) {
			if one.used.Before(at) {
				one.used = at
			}
		})
	}
}

// useDefinition records that a definition and its known secrets are used.
func (t *things) useDefinition(at time.Time, family string) {
	name := definitionThing + family
	t.use(at, append([]string{name}, t.get(name).secrets...)...)
}

// know records the secrets of a definition.
func (t *things) know(family string, containers []ecstypes.ContainerDefinition) {
	t.set(definitionThing+family, func(one *thing) { one.secrets = append([]string{}, secretsOf(containers)...) })
}

// only forgets all things except existing things and things used since a time: a service may not list a new
// thing yet. Things without a time, such as the key of names, stay while they are known.
func (t *things) only(there map[string]bool, since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, one := range t.all {
		if !there[name] && one.used.Before(since) && (one.arn == "" || !one.used.IsZero()) {
			delete(t.all, name)
		}
	}
}

// familyOf returns the family of the definition of a task.
func familyOf(t ecstypes.Task) string {
	family, _, _ := strings.Cut(last(aws.ToString(t.TaskDefinitionArn)), ":")
	return family
}

// secretsOf returns the names of the secrets of a definition.
func secretsOf(containers []ecstypes.ContainerDefinition) (names []string) {
	for _, c := range containers {
		for _, s := range c.Secrets {
			names = append(names, secretName(aws.ToString(s.ValueFrom)))
		}
		if r := c.RepositoryCredentials; r != nil {
			names = append(names, secretName(aws.ToString(r.CredentialsParameter)))
		}
	}
	return names
}

// secretName returns the name of a secret by its ARN, with or without a key: the ARN has the name, a hyphen and six characters.
func secretName(arn string) string {
	const before, drawn = 6, len("-123456")
	parts := strings.Split(arn, ":")
	if len(parts) <= before || len(parts[before]) <= drawn {
		return arn
	}
	return parts[before][:len(parts[before])-drawn]
}

// last returns the part of an ARN, or of a name, after the last slash.
func last(arn string) string { return arn[strings.LastIndex(arn, "/")+1:] }
