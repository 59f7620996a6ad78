// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// definitionThing is the prefix of definitions among the things to remove. All other things are secrets.
const definitionThing = "definition/"

const (
	// sweepEvery is the time between sweeps, which look for definitions and secrets that no pod needs.
	// sweepAgain is the time after a failed sweep.
	sweepEvery, sweepAgain = time.Hour, 5 * time.Minute
	// sharedFor is how long a shared thing stays after its last use. ownFor is how long a thing of a single pod
	// stays if this node does not know the pod: the pod may be about to be made.
	sharedFor, ownFor = 24 * time.Hour, time.Hour
)

// sweeper looks for leftovers at the services.
type sweeper struct {
	every time.Duration
	now   func() time.Time
	uses  uses
}

// uses records the last uses of definitions and secrets of this node, as far as this process knows.
type uses struct {
	mu   sync.Mutex
	last map[string]time.Time // guarded by mu; by thing: the name of a secret, or definitionThing and family
	of   map[string][]string  // guarded by mu; the names of the secrets of a definition, by family
}

// use records that things are used.
func (u *uses) use(at time.Time, things ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]time.Time{}
	}
	for _, thing := range things {
		if u.last[thing].Before(at) {
			u.last[thing] = at
		}
	}
}

// since returns when a thing was used last, or the zero time if this is unknown.
func (u *uses) since(thing string) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.last[thing]
}

// know records the secrets of a definition.
func (u *uses) know(family string, secrets []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[string][]string{}
	}
	u.of[family] = secrets
}

// secrets returns the names of the secrets of a definition, or false if they are unknown.
func (u *uses) secrets(family string) ([]string, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	names, known := u.of[family]
	return names, known
}

// useDefinition records that a definition and its known secrets are used.
func (u *uses) useDefinition(at time.Time, family string) {
	secrets, _ := u.secrets(family)
	u.use(at, append([]string{definitionThing + family}, secrets...)...)
}

// forget removes the record of a use.
func (u *uses) forget(thing string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.last, thing)
	delete(u.of, strings.TrimPrefix(thing, definitionThing))
}

// only forgets all things except existing things and things used since a time: a service may not list a new
// thing yet.
func (u *uses) only(there map[string]bool, since time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for thing, at := range u.last {
		if !there[thing] && at.Before(since) {
			delete(u.last, thing)
		}
	}
	for family := range u.of {
		if _, used := u.last[definitionThing+family]; !used {
			delete(u.of, family)
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
