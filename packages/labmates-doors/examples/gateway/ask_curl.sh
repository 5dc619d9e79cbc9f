#!/bin/sh
# Streams with curl, several at once; OPENAI_BASE_URL and OPENAI_API_KEY come from `labmates gateway`.
for number in $(seq "${CALLS:-8}"); do
    curl --silent --no-buffer "$OPENAI_BASE_URL/responses" --header "Authorization: Bearer $OPENAI_API_KEY" \
        --data "{\"model\": \"$MODEL\", \"input\": \"Name $number things that agents can share.\", \"max_output_tokens\": 400, \"stream\": true}" &
done
wait
