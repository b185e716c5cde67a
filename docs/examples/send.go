// Submits one message: go run send.go TO FROM SUBJECT MESSAGE IDEMPOTENCY_KEY
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"strconv"
	"time"
)

const maxAttempts = 5

var client = &http.Client{Timeout: 10 * time.Second}

// sendMail returns the id of the accepted message, or an error if the request is refused or no response arrives.
func sendMail(fields map[string]string, idempotencyKey string) (string, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return "", err
	}
	var failure error
	for attempt := 0; attempt < maxAttempts; attempt++ {
		status, header, responseBody, err := post(body, idempotencyKey)
		delay := time.Duration(float64(time.Second) * float64(int(1)<<attempt) * (0.5 + rand.Float64()/2))
		switch {
		case err != nil:
			// No response: the message may have been accepted. The key makes the repetition safe.
			failure = err
		case status == http.StatusCreated:
			var created struct{ Result struct{ ID string } }
			err := json.Unmarshal(responseBody, &created)
			return created.Result.ID, err
		default:
			failure = fmt.Errorf("%d %s %s", status, responseBody, header.Get("Postrider-Reason"))
			if status != http.StatusRequestTimeout && status != http.StatusTooManyRequests && status < 500 {
				return "", failure
			}
			if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil {
				delay = time.Duration(seconds) * time.Second
			}
		}
		if attempt < maxAttempts-1 {
			time.Sleep(delay)
		}
	}
	return "", failure
}

func post(body []byte, idempotencyKey string) (int, http.Header, []byte, error) {
	base := os.Getenv("MAIL_API_URL")
	if base == "" {
		base = "http://127.0.0.1:8080"
	}
	request, err := http.NewRequest("POST", base+"/api/v1/send-mail", bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("Authorization", os.Getenv("POSTRIDER_API_KEY"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", idempotencyKey)
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	responseBody, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, responseBody, err
}

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: send TO FROM SUBJECT MESSAGE IDEMPOTENCY_KEY")
		os.Exit(2)
	}
	fields := map[string]string{"to": os.Args[1], "from": os.Args[2], "subject": os.Args[3], "message": os.Args[4]}
	id, err := sendMail(fields, os.Args[5])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(id)
}
