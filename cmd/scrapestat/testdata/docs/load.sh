#!/bin/sh
exec my-load-generator "$@"
