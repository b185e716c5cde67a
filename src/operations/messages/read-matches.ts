/**
 * Reads the matches of a search in store calls of limited time and size, so that no call delays other reads of the
 * store.
 */
import type { FoundMessage } from '../../model/message.ts';
import type { MessageStore } from '../../store/contract.ts';
import type { MessageSearch, MessageSearchResult } from '../../store/search/query.ts';

/** The time limit of one store call. */
const MAX_STORE_CALL_MS = 500;
/** The maximum number of messages of one store call. */
const MAX_STORE_CALL_MESSAGES = 1_000;

/** Searches until `search.limit` messages are found or all messages are searched. */
export async function readMatches(
  store: Pick<MessageStore, 'searchMessages'>,
  search: MessageSearch,
): Promise<MessageSearchResult> {
  const messages: FoundMessage[] = [];
  let { before } = search;
  for (;;) {
    const limit = Math.min(search.limit - messages.length, MAX_STORE_CALL_MESSAGES);
    const result = await store.searchMessages({ ...search, before, limit }, MAX_STORE_CALL_MS);
    messages.push(...result.messages);
    if (result.searchedTo === null || messages.length >= search.limit)
      return { messages, searchedTo: result.searchedTo };
    before = result.searchedTo;
  }
}
