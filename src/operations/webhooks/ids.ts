/** Parses the ids of endpoints, and builds the error of an endpoint that does not exist. */
import { quote } from '../../config/units.ts';
import { formatWebhookId, parseWebhookId } from '../../model/webhook.ts';
import { type ErrorResult, invalid, notFound, ok, type Result } from '../errors.ts';

/** Parses the number of an endpoint from `wh_12` or `12`. */
export function parseId(text: string): Result<number> {
  const id = parseWebhookId(text) ?? parseWebhookId(formatWebhookId(Number(text)));
  if (id !== null) return ok(id);
  return invalid(
    'id',
    `${quote(text)} is not the id of an endpoint such as wh_12; \`postrider webhook list\` lists endpoints`,
  );
}

export function webhookNotFound(id: number): ErrorResult {
  return notFound('id', `there is no endpoint ${formatWebhookId(id)}; \`postrider webhook list\` lists endpoints`);
}
