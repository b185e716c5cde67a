/**
 * Shows the HTML of a message in a sandboxed frame that has no permissions. The service sends the HTML with a separate
 * content security policy, which forbids scripts and external resources.
 */
import { useQuery } from '@tanstack/react-query';
import { createTicketedUrl } from '../api/session';
import { ErrorAlert, Loading } from './page-states';

interface HtmlFrameProps {
  /** The path of the HTML in the operator API. The route must accept a ticket. */
  readonly apiPath: string;
  readonly title: string;
  readonly className: string;
  readonly maxWidthPx?: number;
}

export function HtmlFrame({ apiPath, title, className, maxWidthPx }: HtmlFrameProps) {
  // A frame sends no session header, so each display of the frame needs a new ticket.
  const frameUrl = useQuery({
    queryKey: ['frame', apiPath],
    queryFn: () => createTicketedUrl(apiPath),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  if (frameUrl.isPending) return <Loading />;
  if (frameUrl.isError) return <ErrorAlert error={frameUrl.error} retry={() => frameUrl.refetch()} />;
  return (
    <iframe
      className={className}
      sandbox=""
      referrerPolicy="no-referrer"
      title={title}
      src={frameUrl.data}
      style={maxWidthPx === undefined ? {} : { maxWidth: maxWidthPx }}
    />
  );
}
