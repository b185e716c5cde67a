/**
 * Downloads the raw source or the header fields of a message, as long as its body is stored. The service composes the
 * source again. A notification names the known differences between this source and the transmitted bytes.
 */
import { Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import type { MessageDetails } from '../../../src/operations/message-details.ts';
import type { MessageSource } from '../../../src/operations/messages.ts';
import { get, path } from '../api/client';
import { saveFile } from '../parts/download';

type SourcePart = 'source' | 'headers';

export function SourceButtons({ message: { id } }: { readonly message: MessageDetails }) {
  const { mutate, isPending, variables } = useMutation({
    mutationFn: async (part: SourcePart) => {
      const messageSource = await get<MessageSource>(
        path`/messages/${id}/source`,
        part === 'headers' ? { headersOnly: 'true' } : {},
      );
      const name = part === 'headers' ? `${id}-headers.txt` : `${id}.eml`;
      saveFile(new Blob([messageSource.source], { type: part === 'headers' ? 'text/plain' : 'message/rfc822' }), name);
      return messageSource;
    },
    onSuccess: (answer) => {
      const message = describeDifference(answer);
      if (message !== null)
        notifications.show({ message, autoClose: false, closeButtonProps: { 'aria-label': 'Close' } });
    },
    onError: ({ message }) =>
      notifications.show({ color: 'red', message, closeButtonProps: { 'aria-label': 'Close' } }),
  });
  const isBusy = (part: SourcePart) => isPending && variables === part;
  return (
    <>
      <Button variant="default" loading={isBusy('source')} onClick={() => mutate('source')}>
        Raw source
      </Button>
      <Button variant="default" loading={isBusy('headers')} onClick={() => mutate('headers')}>
        Headers
      </Button>
    </>
  );
}

/** Describes the known differences from the transmitted bytes. Returns null if no difference is known. */
function describeDifference({ signature, replacedFields }: MessageSource): string | null {
  const sentences = [
    ...(signature === 'other-keys'
      ? ['A DKIM key was activated after the last attempt, so DKIM-Signature differs from the transmitted field.']
      : []),
    ...(replacedFields.length > 0
      ? [`The provider replaces these header fields after the transmission: ${replacedFields.join(', ')}.`]
      : []),
  ];
  return sentences.length === 0 ? null : sentences.join(' ');
}
