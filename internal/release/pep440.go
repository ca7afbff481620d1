package main

import (
	"fmt"
	"regexp"
)

// preRelease is what a version may have behind its numbers where Python must read it, too.
var preRelease = regexp.MustCompile(`^(rc|alpha|beta)\.?([0-9]+)$`)

// pep440 is a version of a tag as Python spells it: 0.2.0rc1 of 0.2.0-rc.1.
func pep440(version string) (string, error) {
	form := versionForm.FindStringSubmatch(version)
	if form == nil {
		return "", fmt.Errorf("read version %s: want 1.2.3 or 1.2.3-rc.1", version)
	}
	if form[2] == "" {
		return form[1], nil
	}
	pre := preRelease.FindStringSubmatch(form[2][1:])
	if pre == nil {
		return "", fmt.Errorf("read version %s: Python knows 1.2.3-rc.1, 1.2.3-beta.1 and 1.2.3-alpha.1", version)
	}
	return form[1] + map[string]string{"rc": "rc", "alpha": "a", "beta": "b"}[pre[1]] + pre[2], nil
}
