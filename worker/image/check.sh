#!/bin/sh
# From a model directory to sound, as a pod goes: `check.sh MODEL-DIRECTORY [EMULATOR WORD...]`. Fails unless all works.
set -eu
model=$1
shift
work=$(mktemp -d)
export OMP_NUM_THREADS=1
cat >"$work/model.json" <<END
{"schema": 1, "namespace": "check", "model": "check", "version": "1", "revision": "check",
 "source": {"uri": "pvc://check/model", "path": "$model"},
 "staging": {"sizeLimitBytes": 1073741824},
 "engine": {"device": "cpu", "warmUp": {"texts": ["Hello."]}, "loadTimeoutSeconds": 60}}
END
set -- "$@" /opt/cosyvoice/bin/python
"$@" -m cosyvoice_worker stage --config "$work/model.json" --root "$work/weights" --termination-log "$work/end"
staged=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["directory"])' "$work/weights/staged.json")
"$@" -m cosyvoice_worker synthesize --model "$work/weights/$staged" --text "Does it speak?" --out "$work/speech.wav"
# The recording side too: the models that make voices are run by the ONNX runtime.
"$@" - "$work/speech.wav" <<'END'
import sys

import onnxruntime
import soundfile

samples, rate = soundfile.read(sys.argv[1])
loudest = abs(samples).max() if len(samples) else 0.0
if rate != 24000 or len(samples) < rate // 10 or loudest < 0.001:
    sys.exit(f"{sys.argv[1]}: {len(samples)} samples at {rate} Hz, loudest {loudest}: this is not speech")
print(f"{len(samples) / rate:.2f} s of sound at {rate} Hz, loudest {loudest:.3f}; onnxruntime {onnxruntime.__version__}")
END
rm -rf "$work"
