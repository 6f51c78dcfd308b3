module cosyvoice.dev/dev/pause

go 1.26.0
