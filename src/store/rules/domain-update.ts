/** What the result of a check or a rotation changes of a domain, decided for both databases. Pure. */
import { isDeepStrictEqual } from 'node:util';
import {
  type DomainUpdate,
  lastAnswers,
  publishedSelectors,
  type RecordCheck,
  type SendingDomain,
} from '../../model/domain.ts';

/**
 * The last answer about each record, and whether nodes have to read the domain anew: a check that brings nothing new must not make
 * them. While the domain fails, the time of the check says whether it is blocked, so that each check is news.
 */
export function domainUpdate(
  before: SendingDomain,
  answered: readonly RecordCheck[],
  { status, authenticatedAt, failingSince, checks, keys }: DomainUpdate,
): { readonly answers: readonly RecordCheck[]; readonly isNews: boolean } {
  const answers = lastAnswers(answered, checks);
  const published = publishedSelectors(before.name, keys, answers);
  const same = isDeepStrictEqual(
    [status, authenticatedAt, failingSince, published, keys],
    [before.status, before.authenticatedAt, before.failingSince, before.published, before.keys],
  );
  return { answers, isNews: status === 'failing' || !same };
}
