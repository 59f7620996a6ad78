// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"strings"
)

// Error has the volumes of a pod whose setup failed.
type Error struct {
	// Volumes has one error for each volume, with the text of a kubelet's event FailedMount: MountVolume.SetUp failed for volume "x" : configmap "y"
	// not found.
	Volumes []error
}

// Error joins the texts.
func (e *Error) Error() string {
	texts := make([]string, 0, len(e.Volumes))
	for _, err := range e.Volumes {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (e *Error) Unwrap() []error { return e.Volumes }

// add adds the error of a volume.
func (e *Error) add(volume string, err error) {
	if err != nil {
		e.Volumes = append(e.Volumes, fmt.Errorf("MountVolume.SetUp failed for volume %q : %w", volume, err))
	}
}

// orNil returns e, or nil if it has no errors.
func (e *Error) orNil() error {
	if len(e.Volumes) == 0 {
		return nil
	}
	return e
}
