/** Parses the ids of endpoints, and builds the error of an endpoint that does not exist. */
import { quote } from '../../config/units.ts';
import { formatWebhookId, parseWebhookId } from '../../model/webhook.ts';
import { createInvalid, createNotFound, type ErrorResult, ok, type Result } from '../errors.ts';

/** Parses the number of an endpoint from `wh_12` or `12`. */
export function parseId(text: string): Result<number> {
  const id = parseWebhookId(text) ?? parseWebhookId(formatWebhookId(Number(text)));
  if (id !== null) return ok(id);
  return createInvalid(
    'id',
    `${quote(text)} is not the id of an endpoint such as wh_12; \`postrider webhook list\` lists endpoints`,
  );
}

export function createWebhookNotFound(id: number): ErrorResult {
  return createNotFound(
    'id',
    `there is no endpoint ${formatWebhookId(id)}; \`postrider webhook list\` lists endpoints`,
  );
}
