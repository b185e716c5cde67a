# Submits one message: ruby send.rb TO FROM SUBJECT MESSAGE IDEMPOTENCY_KEY
require 'json'
require 'net/http'

API_URL = URI("#{ENV.fetch('MAIL_API_URL', 'http://127.0.0.1:8080')}/api/v1/send-mail")
MAX_ATTEMPTS = 5

# Returns the id of the accepted message. Raises an error if the request is refused or no response arrives.
def send_mail(fields, idempotency_key)
  headers = {
    'Authorization' => ENV.fetch('POSTRIDER_API_KEY'),
    'Content-Type' => 'application/json',
    'Idempotency-Key' => idempotency_key
  }
  failure = nil
  1.upto(MAX_ATTEMPTS) do |attempt|
    delay = 2**(attempt - 1) * rand(0.5..1.0)
    begin
      response = Net::HTTP.start(API_URL.host, API_URL.port, use_ssl: API_URL.scheme == 'https', open_timeout: 10,
                                                     read_timeout: 10, max_retries: 0) do |http|
        http.post(API_URL.path, JSON.generate(fields), headers)
      end
      status = response.code.to_i
      return JSON.parse(response.body)['result']['id'] if status == 201

      failure = "#{status} #{response.body} #{response['Postrider-Reason']}".strip
      break if ![408, 429].include?(status) && status < 500

      delay = response['Retry-After'].to_f if response['Retry-After']
    rescue SystemCallError, SocketError, IOError, Timeout::Error => error
      failure = error.message # No response: the message may have been accepted. The key makes the repetition safe.
    end
    sleep(delay) if attempt < MAX_ATTEMPTS
  end
  raise failure
end

to, from, subject, message, key = ARGV
begin
  puts send_mail({ to: to, from: from, subject: subject, message: message }, key)
rescue RuntimeError => error
  abort error.message
end
