/** What an address names is not there: said as such, with the way to what is. Anything else is a failure. */
import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import { ApiError } from '../api/client';
import { Empty, Failure } from './states';

interface AbsentProps {
  readonly error: unknown;
  readonly retry: () => unknown;
  /** Such as `There is no account of this name`. */
  readonly title: string;
  readonly href: string;
  readonly link: string;
}

export function Absent({ error, retry, title, href, link }: AbsentProps) {
  if (!(error instanceof ApiError) || error.status !== 404) return <Failure error={error} retry={retry} />;
  return (
    <Empty title={title}>
      <Anchor component={Link} href={href}>
        {link}
      </Anchor>
    </Empty>
  );
}
