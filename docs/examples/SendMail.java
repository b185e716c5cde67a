// Submits one message: java SendMail.java TO FROM SUBJECT MESSAGE IDEMPOTENCY_KEY (Java 17 or later)
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class SendMail {
    private static final int MAX_ATTEMPTS = 5;
    private static final Pattern ID = Pattern.compile("\"id\":\"([0-9a-f-]{36})\"");
    private static final HttpClient CLIENT = HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(10)).build();

    /** Returns the id of the accepted message. Throws if the request is refused or no response arrives. */
    static String sendMail(String to, String from, String subject, String message, String idempotencyKey)
            throws IOException, InterruptedException {
        String body = "{\"to\":" + toJson(to) + ",\"from\":" + toJson(from)
            + ",\"subject\":" + toJson(subject) + ",\"message\":" + toJson(message) + "}";
        String base = System.getenv().getOrDefault("MAIL_API_URL", "http://127.0.0.1:8080");
        HttpRequest request = HttpRequest.newBuilder(URI.create(base + "/api/v1/send-mail"))
            .header("Authorization", System.getenv("POSTRIDER_API_KEY"))
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", idempotencyKey)
            .timeout(Duration.ofSeconds(10))
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
        IOException failure = null;
        for (int attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
            double delaySeconds = Math.pow(2, attempt - 1) * ThreadLocalRandom.current().nextDouble(0.5, 1);
            try {
                HttpResponse<String> response = CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
                int status = response.statusCode();
                Matcher id = ID.matcher(response.body());
                if (status == 201 && id.find()) return id.group(1);
                failure = new IOException(status + " " + response.body()
                    + response.headers().firstValue("Postrider-Reason").map(reason -> " (" + reason + ")").orElse(""));
                if (status != 408 && status != 429 && status < 500) break;
                delaySeconds = response.headers().firstValue("Retry-After").map(Double::valueOf).orElse(delaySeconds);
            } catch (IOException error) {
                failure = error; // No response: the message may have been accepted. The key makes the repetition safe.
            }
            if (attempt < MAX_ATTEMPTS) Thread.sleep((long) (delaySeconds * 1000));
        }
        throw failure;
    }

    /** The standard library has no JSON. This method writes one string as in RFC 8259 section 7. */
    private static String toJson(String text) {
        StringBuilder json = new StringBuilder("\"");
        for (char unit : text.toCharArray()) {
            if (unit == '"' || unit == '\\') json.append('\\').append(unit);
            else if (unit < ' ') json.append(String.format("\\u%04x", (int) unit));
            else json.append(unit);
        }
        return json.append('"').toString();
    }

    public static void main(String[] args) throws InterruptedException {
        try {
            System.out.println(sendMail(args[0], args[1], args[2], args[3], args[4]));
        } catch (IOException failure) {
            System.err.println(failure.getMessage());
            System.exit(1);
        }
    }
}
