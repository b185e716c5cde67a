/**
 * A link to a message in a list. It shows the end of the id, because ids from the same time have the same beginning.
 */
import { Link } from 'wouter';
import { path } from '../api/client';

export function MessageLink({ id }: { readonly id: string }) {
  return (
    <Link href={path`/messages/${id}`} className="message-link" title={id}>
      message
      <code>
        <bdi>{id}</bdi>
      </code>
    </Link>
  );
}
